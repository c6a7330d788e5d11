"""Programs that fork while they have a session; ``python -m tests.forking NAME FOLDER`` runs one and prints JSON.

They are processes of their own: the test runner has threads, which a fork would leave out.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory.backends.mnemopi import pool as readers
from ipy_memory.backends.mnemopi.backend import MnemopiBackend
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(sys.argv[2]) if __name__ == "__main__" else Path()
ITEMS = 40


def opened(**given: Any) -> MemorySession:
    settings = {"mnemopi.dbPath": str(FOLDER / "m.db"), **given.pop("settings", {})}
    return open_session("mnemopi", cwd="/proj/shop", agent_dir=FOLDER, settings=settings, **given)


def backend(session: MemorySession) -> MnemopiBackend:
    assert isinstance(session.backend, MnemopiBackend)
    return session.backend


def in_child(work: Callable[[], Any]) -> Callable[[], Any]:
    """Fork; return what waits for the child and gives its answer, or the name of its error."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = work()
        except BaseException as error:  # noqa: BLE001  the child must never return into the program
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)

    def wait() -> Any:
        with os.fdopen(reader) as file:
            answer = json.loads(file.read() or "null")
        os.waitpid(child, 0)
        return answer

    return wait


def stored(session: MemorySession, text: str) -> str:
    return str(session.retain(text).text)


# ---- pools


def pool(method: str, *, close: bool = False) -> Any:
    session = opened()
    stored(session, "before the fork")
    context = multiprocessing.get_context(method)
    workers = context.Pool(4)
    if close:
        session.close()
    answers = workers.map(session.retain, [f"memory number {number}" for number in range(ITEMS)])
    workers.close()
    workers.join()
    return [answer.text for answer in answers], None if close else stored(session, "after the pool")


def executor() -> Any:
    session = opened()
    stored(session, "before the fork")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as workers:
        found = list(workers.map(session.recall, ["before", "fork"]))
        texts = [answer.text for answer in workers.map(session.retain, [f"memory {number}" for number in range(10)])]
    return [len(answer.hits) for answer in found], texts


class Counting:
    """An embedder that writes down which process computed how many vectors."""

    model = "counting"

    def embed(self, texts: list[str]) -> list[list[float]]:
        with (FOLDER / "embedded").open("a") as file:
            file.write(f"{os.getpid()} {len(texts)}\n")
        return [[1.0, 2.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(len(text)), 1.0]


def only_copied() -> Any:
    """A session with an embedder of its own: a forked worker has it, a spawned one cannot."""
    session = opened(embedder=Counting())
    answers = []
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as workers:
            try:
                answers.append(workers.map(session.retain, [f"by {method}"])[0].text)
            except Exception as error:  # noqa: BLE001
                answers.append(f"{type(error).__name__}: {error}")
    return answers


def work_left_over() -> Any:
    session = opened(embedder=Counting())
    stored(session, "of the parent")
    worker = multiprocessing.get_context("fork").Process(target=session.retain, args=("of the child",))
    worker.start()
    worker.join()
    there = (FOLDER / "embedded").read_text().split()
    left = session.flush()
    return there == [str(worker.pid), "1"], left, (FOLDER / "embedded").read_text().count("\n")


# ---- single forks


def both_write() -> Any:
    session = opened()
    stored(session, "before the fork")

    def write(who: str) -> list[str]:
        return [stored(session, f"{who} says {number}") for number in range(ITEMS)]

    waits = [in_child(lambda name=name: write(name)) for name in ("first", "second")]
    mine = write("parent")
    return [mine, *(wait() for wait in waits)]


def nested() -> Any:
    session = opened()
    stored(session, "before the fork")

    def child() -> Any:
        mine = stored(session, "of the child")
        deeper = in_child(lambda: stored(session, "of the grandchild"))
        return [mine, stored(session, "again of the child"), deeper()]

    found = in_child(child)()
    return [*found, stored(session, "after the fork")]


def open_read() -> Any:
    """Fork with a half-read answer: the child begins with files of its own, the parent reads on."""
    session = opened()
    for number in range(300):
        stored(session, f"before the fork {number}")
    bank = backend(session).banks.all()[0]
    with bank.snapshot() as connection:
        rows = connection.execute("SELECT content FROM working_memory")
        first = [rows.fetchone()[0]]
        wait = in_child(lambda: stored(session, "of the child"))
        child = wait()
        rest = [row[0] for row in rows]
    return child, len(first + rest), stored(session, "after the fork")


def held_lock() -> Any:
    """Fork while another thread is in a call that does not end: the child's lock is another one."""
    readers.FORK_PATIENCE_SECONDS = 0.1
    session = opened()
    stored(session, "before the fork")
    banks = backend(session).banks
    begun, over = threading.Event(), threading.Event()

    def hold() -> None:
        with banks.lock:
            begun.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    child = in_child(lambda: [stored(session, "of the child"), len(session.recall("fork").hits)])()
    over.set()
    thread.join()
    return child, stored(session, "after the fork")


def write_of_another_thread() -> Any:
    """Fork while another thread is in a write: the child refuses that bank, and what is written stays whole."""
    readers.FORK_PATIENCE_SECONDS = 0.1
    session = opened()
    stored(session, "before the fork")
    banks = backend(session).banks
    begun, over = threading.Event(), threading.Event()

    def hold() -> None:
        with banks.lock, banks.all()[0].transaction() as connection:
            connection.execute("UPDATE working_memory SET content = 'changed by the thread'")
            begun.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()

    def child() -> list[str]:
        answers = []
        for again in (session, opened()):
            try:
                answers.append(stored(again, "of the child"))
            except Exception as error:  # noqa: BLE001
                answers.append(str(error))
        return answers

    refused = in_child(child)()
    over.set()
    thread.join()
    return refused, stored(session, "after the fork")


def recalling_thread() -> Any:
    """Fork again and again while another thread recalls: neither is disturbed."""
    session = opened()
    for number in range(50):
        stored(session, f"before the fork {number}")
    over, found, failed = threading.Event(), list[int](), list[str]()

    def recall() -> None:
        while not over.is_set():
            try:
                found.append(len(session.recall("fork").hits))
            except Exception as error:  # noqa: BLE001
                failed.append(repr(error))

    thread = threading.Thread(target=recall)
    thread.start()
    children = [in_child(lambda n=number: stored(session, f"of child {n}"))() for number in range(8)]
    over.set()
    thread.join()
    return children, failed, set(found) == {8}


def ids() -> Any:
    session = opened()
    first = session.ids.nonce()
    child = in_child(lambda: [session.ids.nonce(), session.ids.nonce()])()
    return first.rpartition(":")[0] != child[0].rpartition(":")[0], len({*child, session.ids.nonce()})


PROGRAMS: dict[str, Callable[[], Any]] = {
    "fork": lambda: pool("fork"),
    "closed": lambda: pool("fork", close=True),
    "spawn": lambda: pool("spawn"),
    "forkserver": lambda: pool("forkserver"),
    **{
        work.__name__: work
        for work in (
            executor,
            only_copied,
            work_left_over,
            both_write,
            nested,
            open_read,
            held_lock,
            write_of_another_thread,
            recalling_thread,
            ids,
        )
    },
}

if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]]()))
