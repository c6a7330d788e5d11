"""The program as a process among others: what it imports, pipes, terminals, signals, encodings, errors."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ipy_memory.__main__ import main
from ipy_memory.shell import program as running
from ipy_memory.shell.output import in_shell_words
from tests.shell.conftest import DEPLOY_TARGET, ROOT, Program

WITHOUT = """
import sys

class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"IPython", "traitlets", "ipywidgets", "anywidget", "matplotlib"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Gone())
from ipy_memory.__main__ import main
code = main(sys.argv[1:])
print(*sorted({"numpy", "pandas", "httpx", "sqlite_utils"} & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


class WithoutIPython(Program):
    """The program where IPython is not installed; its last line on stderr names the heavy modules that it loaded."""

    @staticmethod
    def command() -> list[str]:
        return [sys.executable, "-c", WITHOUT]


@pytest.mark.parametrize(
    "words",
    [
        ("-h",),
        ("status",),
        ("recall", "--no-touch", "deploy"),
        ("recall", "--no-touch", "--json", "--explain", "deploy"),
        ("reflect", "--no-touch", "deploy"),
        ("browse", "--json"),
        ("show", DEPLOY_TARGET),
        ("chain", DEPLOY_TARGET),
        ("banks",),
        ("scopes", "deploy"),
        ("stats",),
        ("report",),
        ("doctor",),
        ("audit", "orphans"),
        ("why", "--all", "deploy"),
    ],
    ids=" ".join,
)
def test_a_command_needs_no_ipython_and_loads_nothing_heavy(program: Program, words: tuple[str, ...]) -> None:
    ended = WithoutIPython(program.home)(*words)
    assert ended.out
    assert ended.err.splitlines()[-1] == ""


def test_retain_needs_no_ipython(own: Program) -> None:
    assert WithoutIPython(own.home)("retain", "Tea at four.").out == "1 memory stored.\n"


def start(program: Program, *words: str, stdout: int = subprocess.PIPE, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*program.command(), *words],
        env=program.env | env,
        cwd=program.home.folder,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def test_a_reader_that_leaves_early_gets_no_complaint(own: Program) -> None:
    own("retain", "--lines", stdin="".join(f"line {number} {'x' * 90}\n" for number in range(2000)).encode())
    process = start(own, "browse", "--json", "--cwd", "/demo/shop", "--limit", "2000")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(10).startswith(b'{"notes"')
    process.stdout.close()
    assert process.wait(timeout=120) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize(("target", "says"), [("> /dev/full", "No space left"), (">&-", "stdout is closed")])
def test_a_result_that_cannot_be_written_is_an_error(program: Program, target: str, says: str) -> None:
    line = f'exec "$@" {target}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *program.command(), "browse", "--bank", "*"],
        env=program.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_ctrl_c_ends_it_without_a_traceback(program: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        process = start(program, "--backend", "hindsight", "recall", "deploy", HINDSIGHT_API_URL=url)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, b"", b"ipy-memory: interrupted\n")


def in_terminal(program: Program, *words: str, **env: str) -> str:
    """Return what a command writes to a terminal."""
    master, slave = pty.openpty()
    process = start(program, *words, stdout=slave, **env)
    os.close(slave)
    written = b""
    # At the end of the other side Linux gives an error instead of nothing.
    while part := _read(master):
        written += part
    os.close(master)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return written.decode(errors="strict").replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


HOSTILE = "first\x1b[2J\x9b31m \u202egnp.exe\u2066 \x07bell\rover \u200bzero"


def test_a_terminal_is_not_steered_by_memories_and_a_pipe_gets_them_as_they_are(own: Program) -> None:
    own("retain", stdin=f"{HOSTILE}\nsecond\tline ⛅".encode())
    for words in (("recall", "second line"), ("browse",), ("--json", "browse", "second")):
        shown = in_terminal(own, "--cwd", "/demo/shop", *words)
        assert not set("\x1b\x9b\x07\r\u202e\u2066\u200b") & set(shown)
        assert "gnp.exe" in shown
        if "--json" in words:
            assert HOSTILE in {memory["content"].split("\n")[0] for memory in json.loads(shown)["memories"]}
        else:
            assert "⟨U+001B⟩[2J" in shown
            assert "⟨U+202E⟩gnp.exe" in shown
    piped = own("recall", "--no-touch", "second line").out
    assert HOSTILE in piped


def test_control_characters_in_errors_steer_nothing(program: Program) -> None:
    ended = program("show", f"{HOSTILE}".replace(" ", "_"), code=2)
    assert not set("\x1b\x9b\x07\r\u202e\u2066\u200b") & set(ended.err)


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONUTF8": "0", "LANG": "C"}])
def test_output_in_a_pipe_is_utf8_whatever_the_locale(own: Program, env: dict[str, str]) -> None:
    own("retain", stdin="Grüße an 東京 ⛅".encode())
    assert "Grüße an 東京 ⛅" in own("recall", "--no-touch", "東京", env=env).out
    assert own("browse", "--json", "Grüße", env=env | {"PYTHONUTF8": "1"}).data["total"] == 1


def test_half_of_a_character_is_written_as_its_replacement(own: Program) -> None:
    own("retain", stdin=("x" * 498 + "😀 cut here").encode())
    assert "�" in own("recall", "--no-touch", "cut here").out
    assert "�" in own("recall", "--no-touch", "--json", "cut here").data["text"]


def fail(*_: object) -> None:
    raise ValueError("a secret of the user")


def test_an_internal_error_is_one_line_that_holds_no_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(running, "HANDLERS", {"status": fail})
    assert main(["status"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "internal error (ValueError in test_program.py" in said.err
    assert "secret" not in said.err
    with pytest.raises(ValueError, match="a secret"):
        main(["status", "--debug"])


def test_an_interrupt_while_modules_are_imported_is_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_words: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run", interrupted)
    assert main(["status"]) == 130


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%memory browse lists them", "ipy-memory browse lists them"),
        ("see %memory show -h", "see ipy-memory show -h"),
        ("choose one with `%memory use mnemopi`", "choose one with `--backend mnemopi`"),
        ("set it: %memory scope per-project-tagged", "set it: --scope per-project-tagged"),
        ("%recall --bank old does", "ipy-memory recall --bank old does"),
        ("%memory record on", "%memory record on"),
        ("100 %memory", "100 %memory"),
    ],
)
def test_a_sentence_about_magics_names_the_commands_of_the_program(text: str, words: str) -> None:
    assert in_shell_words(text) == words


def demo_process(folder: Path, *words: str) -> subprocess.Popen[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder / "tmp")}
    env["PYTHONPATH"] = os.pathsep.join((str(folder), str(ROOT)))
    (folder / "tmp").mkdir()
    command = [sys.executable, "-m", "ipy_memory", "demo", *words]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_demo_removes_its_folder(tmp_path: Path) -> None:
    process = demo_process(tmp_path, "--no-lab")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert "removed at the end; --folder PATH keeps them" in out
    assert list((tmp_path / "tmp").iterdir()) == []


FAKE_LAB = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(sys.argv[1], flush=True)
signal.pause()
"""


def test_the_demo_hands_an_end_on_to_its_server_and_removes_its_folder(tmp_path: Path) -> None:
    (tmp_path / "jupyterlab").mkdir()
    (tmp_path / "jupyterlab" / "__init__.py").touch()
    (tmp_path / "jupyterlab" / "__main__.py").write_text(FAKE_LAB)
    process = demo_process(tmp_path)
    assert process.stdout is not None
    root = next(line for line in process.stdout if line.startswith("--ServerApp.root_dir="))
    folder = Path(root.strip().partition("=")[2])
    assert (folder / "00_quickstart.ipynb").exists()
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode == 7
    assert not folder.exists()
    assert list((tmp_path / "tmp").iterdir()) == []
