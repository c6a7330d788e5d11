"""Signs of life: said while somebody waits, and gone without a trace."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from ipy_memory.notebook.progress import (
    OutputLine,
    Progress,
    Pulse,
    TerminalLine,
    clock,
    is_alone,
    progress,
    word,
)
from tests.backends.hindsight.stub import StubServer, until
from tests.notebook.test_interrupts import home
from tests.services.kernel import Kernel, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.notebook.conftest import Notebook


class Said:
    """A line that remembers what it showed."""

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self.heard = threading.Event()

    def show(self, text: str) -> None:
        self.texts.append(text)
        self.heard.set()

    def hide(self) -> None:
        self.texts.append(None)


class Publisher:
    """Remembers what it is given to show."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def publish(self, data: dict[str, str], _metadata: object, *, transient: dict[str, str], update: bool) -> None:
        self.sent.append((data, transient["display_id"], update))

    def clear_output(self, *, wait: bool) -> None:
        self.sent.append(("clear", wait))


def test_a_pulse_beats_until_it_is_left() -> None:
    beats: list[float] = []
    twice = threading.Event()

    def beat(seconds: float) -> None:
        beats.append(seconds)
        if len(beats) == 2:
            twice.set()

    with Pulse(beat) as pulse:
        assert twice.wait(60)
    assert 0 < beats[0] < beats[1]
    assert not pulse._thread.is_alive()


def test_what_was_said_is_taken_back_once_and_nothing_follows() -> None:
    line = Said()
    with Progress(line) as told:
        told.of("banks")(3, 12)
        assert line.heard.wait(60)
        told.end()
        shown = list(line.texts)
    assert shown[-1] is None
    assert str(shown[0]).startswith("[#####...............] banks: 3 of 12 ")
    assert line.texts == shown


def test_a_bar_is_shown_where_the_number_of_steps_is_known() -> None:
    assert word(("parts", 5, 5), 2).startswith("[####################] parts: 5 of 5 2.0 s ")
    assert word(("banks", 0, 1), 0.3) == word(None, 0.3)
    assert word(None, 0.3).startswith("working… 0.3 s ")
    assert clock(1.0) != clock(1.04)


def test_a_line_alone_in_its_cell_is_cleared_and_another_one_becomes_empty() -> None:
    for alone, end in ((True, ("clear", False)), (False, ({}, True))):
        publisher = Publisher()
        line = OutputLine(publisher, alone=alone)
        line.hide()
        assert publisher.sent == []
        line.show("a")
        line.show("b")
        line.hide()
        line.hide()
        first, second, last = publisher.sent
        assert first == ({"text/plain": "a"}, first[1], False)
        assert second == ({"text/plain": "b"}, first[1], True)
        assert last == (end if alone else ({}, first[1], True))


def test_a_terminal_keeps_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    line = TerminalLine(sys.stderr)
    line.hide()
    assert capsys.readouterr().err == ""
    line.show("working")
    line.hide()
    line.hide()
    assert capsys.readouterr().err == "\r\x1b[Kworking\r\x1b[K"


@pytest.mark.parametrize(
    "cell",
    ["%recall x", "df = %memory browse", "# why\n\n%memory why --all x", "%%recall --limit 3\na\nb", "%recall x\n\n"],
)
def test_a_cell_of_one_magic_holds_no_other_output(cell: str) -> None:
    assert is_alone(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "print(1)\n%recall x",
        "%recall x\nprint(1)",
        "for x in y:\n    %recall x",
        "%%time\n%recall x",
        "print(1); 5 % 3",
        "",
    ],
)
def test_in_any_other_cell_there_may_be_one(cell: str) -> None:
    assert not is_alone(cell)


def test_nothing_is_said_without_a_front_end(notebook: Notebook) -> None:
    assert progress(notebook.shell)._line is None  # type: ignore[arg-type]


@pytest.fixture
def kernel(stub: StubServer, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel whose memory is on a server that answers when it is let."""
    settings = {"memory": {"backend": "hindsight"}, "hindsight": {"apiUrl": stub.url, "mentalModelsEnabled": False}}
    with running(tmp_path, home(tmp_path / "home", settings)) as kernel:
        kernel.cell("%load_ext ipy_memory")
        kernel.cell("%recall x")
        stub.answer_with([{"delay_ms": 600_000, "body": {"results": [{"text": "alpha"}]}}])
        yield kernel


@pytest.mark.claim("N-02")
def test_a_slow_magic_shows_signs_of_life_and_leaves_one_output(kernel: Kernel, stub: StubServer) -> None:
    done = kernel.begin("%recall slow")
    assert "working…" in json.dumps(kernel.sign(done)["content"], ensure_ascii=False)
    stub.released.set()
    (output,) = kernel.end(done).outputs
    assert output["output_type"] == "execute_result"
    assert "alpha" in output["data"]["text/plain"]


def test_what_a_cell_printed_before_stays(kernel: Kernel, stub: StubServer) -> None:
    done = kernel.begin("print('before')\nfound = %recall slow\nprint(len(found))")
    while not any("working…" in str(sent["content"]) for sent in done.messages):
        kernel.step(done)
    stub.released.set()
    printed, line, after = kernel.end(done).outputs
    assert (printed["text"], line["data"], after["text"]) == ("before\n", {}, "1\n")


def test_where_nobody_waits_nothing_is_said(kernel: Kernel, stub: StubServer) -> None:
    done = kernel.begin("%recall slow", person=False)
    until(lambda: len(stub.requests) == 2, 60)
    stub.released.set()
    kernel.end(done)
    assert [sent["msg_type"] for sent in done.messages] == ["execute_result"]
