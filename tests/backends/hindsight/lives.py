"""Processes that retain on a server and end in many ways; ``python -m tests.backends.hindsight.lives NAME FOLDER URL``.

Each prints JSON. They are processes of their own, since the test runner has threads that a fork would leave out.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

FOLDER, URL = (Path(sys.argv[2]), sys.argv[3]) if __name__ == "__main__" else (Path(), "")
ITEMS = 40


def opened(**settings: Any) -> MemorySession:
    given = {"apiUrl": URL, "mentalModelsEnabled": False, "retainTimeoutMs": 20_000} | settings
    named = {f"hindsight.{name}": value for name, value in given.items()}
    return open_session("hindsight", cwd="/proj/shop", agent_dir=FOLDER, settings=named)


def backend(session: MemorySession) -> Any:
    return session.backend


def retained(session: MemorySession, text: str) -> str:
    return str(session.retain(text).text)


def states(session: MemorySession) -> list[tuple[str, str]]:
    return [(row.text, row.state) for row in backend(session).queue_rows()]


def tell(answer: Any) -> None:
    """Print a line of JSON for the test."""
    print(json.dumps(answer), flush=True)


def in_child(work: Callable[[], Any], end: Callable[[], Any] = lambda: os._exit(0)) -> Callable[[], Any]:
    """Fork; return what waits for the child and gives its answer, or the name of its error."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = work()
        except BaseException as error:  # noqa: BLE001  the child must never return into the program
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps(answer).encode())
        os.close(writer)
        end()
    os.close(writer)

    def wait() -> Any:
        with os.fdopen(reader) as file:
            answer = json.loads(file.read() or "null")
        os.waitpid(child, 0)
        return answer

    return wait


# ---- pools


def pool(method: str, *, terminate: bool = False) -> Any:
    session = opened()
    before = retained(session, "before the fork")
    workers = multiprocessing.get_context(method).Pool(4)
    answers = workers.map(session.retain, [f"memory number {number}" for number in range(ITEMS)])
    if terminate:
        workers.terminate()
    else:
        workers.close()
    workers.join()
    left = states(session)
    report = session.flush()
    return {
        "answers": [before, *(answer.text for answer in answers)],
        "left": left,
        "sent": report.sent,  # type: ignore[attr-defined]
        "then": states(session),
    }


# ---- single forks


def child_ends_without_a_word() -> Any:
    """A child that retains and is gone: the parent shows what it left, and sends it with its next flush."""
    session = opened()
    retained(session, "of the parent")
    answer = in_child(lambda: [retained(session, "of the child"), len(backend(session).queue)])()
    left = states(session)
    session.flush()
    return answer, left, states(session)


def child_exits() -> Any:
    """A child that ends as a program does: it sends its own, and nothing of the parent's."""
    session = opened()
    retained(session, "of the parent")
    in_child(lambda: retained(session, "of the child"), sys.exit)()
    return states(session)


def child_of_a_thread_that_sends() -> Any:
    """Fork while another thread waits for the server's answer: the child's queue and connection are its own."""
    session = opened()
    retained(session, "of the parent")
    sender = threading.Thread(target=session.flush)
    sender.start()
    sys.stdin.readline()  # the server has the request, and keeps the answer back
    child = in_child(
        lambda: [retained(session, "of the child"), session.flush().sent, states(session)]  # type: ignore[attr-defined]
    )()
    tell(child)
    sender.join()
    return states(session)


def parent_ends_first() -> Any:
    """A child outlives its parent: what the parent left is sent by the child's next flush, once."""
    session = opened()
    retained(session, "of the parent")
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        os.sched_yield()
    report = session.flush()
    return report.sent, states(session)  # type: ignore[attr-defined]


def forks_of_many_threads() -> Any:
    """Threads retain while the process forks again and again: everything acknowledged is there."""
    session = opened()
    over, acknowledged = threading.Event(), list[str]()

    def retain(who: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            text = f"thread {who} item {number}"
            retained(session, text)
            acknowledged.append(text)

    threads = [threading.Thread(target=retain, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    children = [in_child(lambda n=number: retained(session, f"child {n}"))() for number in range(6)]
    over.set()
    for thread in threads:
        thread.join()
    session.close()
    return acknowledged, children, states(opened())


# ---- ends


def killed() -> Any:
    """Acknowledge and be killed."""
    retained(opened(), "acknowledged")
    os.kill(os.getpid(), signal.SIGKILL)


def killed_while_it_sends() -> Any:
    session = opened()
    retained(session, "on its way")
    session.flush()


def ends_with_a_thread_that_retains() -> Any:
    """The program ends while a thread still retains: what was acknowledged is sent or kept."""
    session = opened()
    begun = threading.Event()

    def retain() -> None:
        for number in range(10_000):
            try:
                retained(session, f"item {number}")
            except Exception:  # noqa: BLE001  the queue is closed at the end
                return
            tell(f"item {number}")
            begun.set()

    threading.Thread(target=retain, daemon=True).start()
    begun.wait()
    return None


def on_a_full_disk() -> Any:
    """A disk without room: what cannot be kept is refused, what was kept before is sent."""
    session = opened()
    answers = []
    (FOLDER / "ipy_memory").mkdir()
    filler = FOLDER / "filler"
    answers.append(retained(session, "while there was room"))
    with suppress(OSError), filler.open("wb", 0) as file:
        while file.write(b"x" * 4096):
            pass
    for text in ("one more", "and another"):
        try:
            answers.append(retained(session, text * 10_000))
        except MemoryToolkitError as error:
            answers.append(error.one_line())
    filler.unlink()
    answers.append(retained(session, "room again"))
    session.flush()
    return answers, states(session)


WAY = ("outbox.py", "queue.py", "service.py", "backend.py", "client.py", "wire.py")


def killed_at_every_line(step: str = "1") -> Any:
    """Children that retain and flush, each killed one line later than the one before; what is found afterwards."""
    found, line, alive = [], 0, False
    while not alive:
        line += int(step)
        folder = FOLDER / str(line)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            session = open_session("hindsight", cwd="/proj/shop", agent_dir=folder, settings=SETTINGS)
            left = line

            def trace(frame: FrameType, event: str, _: Any) -> Any:
                nonlocal left
                if Path(frame.f_code.co_filename).name not in WAY:
                    return None
                if event == "line":
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                return trace

            sys.settrace(trace)
            session.retain(f"item {line}")
            os.write(writer, b"acknowledged")
            session.flush()
            os._exit(0)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        alive = os.WIFEXITED(status)
        acknowledged = bool(os.read(reader, 100))
        os.close(reader)
        session = open_session("hindsight", cwd="/proj/shop", agent_dir=folder, settings=SETTINGS)
        there = [state for _, state in states(session)]
        session.flush()
        found.append((line, acknowledged, there, [state for _, state in states(session)]))
        session.close()
    return found


SETTINGS: dict[str, Any] = {"hindsight.apiUrl": URL, "hindsight.mentalModelsEnabled": False}


def looks() -> Any:
    return states(opened())


def flushes() -> Any:
    session = opened()
    report = session.flush()
    return report.sent, states(session)  # type: ignore[attr-defined]


PROGRAMS: dict[str, Callable[..., Any]] = {
    "fork": lambda: pool("fork"),
    "terminated": lambda: pool("fork", terminate=True),
    "spawn": lambda: pool("spawn"),
    "forkserver": lambda: pool("forkserver"),
    **{
        work.__name__: work
        for work in (
            child_ends_without_a_word,
            child_exits,
            child_of_a_thread_that_sends,
            parent_ends_first,
            forks_of_many_threads,
            killed,
            killed_while_it_sends,
            ends_with_a_thread_that_retains,
            on_a_full_disk,
            killed_at_every_line,
            looks,
            flushes,
        )
    },
}

if __name__ == "__main__":
    tell(PROGRAMS[sys.argv[1]](*sys.argv[4:]))
