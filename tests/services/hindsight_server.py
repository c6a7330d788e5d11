"""A real, disposable Hindsight server for tests: PostgreSQL, a stand-in model, the API server.

In Python::

    with running_server(Path(".hindsight-venv"), api_key="key") as server:
        httpx.get(f"{server.base_url}/version")

From a shell, ``python -m tests.services.hindsight_server --venv DIR`` prints one line of JSON
when all is up and runs until its standard input closes or it is interrupted;
``--install-only`` just fills the environment, so that a pipeline can cache it.

The server has some 120 pinned dependencies and so lives in a virtual environment of its own.
Nothing listens outside 127.0.0.1, nothing is fetched at run time, and everything that was
started ends with the block, or with this process (see :mod:`tests.services.guardian`).
Every retained item is stored as it was written (at most 3,000 characters a memory), so that a
test knows exactly what is stored.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.services import guardian
from tests.services.openai_stub import DIMENSIONS, OpenAIStub

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROJECT = Path(__file__).resolve().parents[2]
PINS = Path(__file__).with_name("hindsight-requirements.txt")
VENV_VARIABLE = "IPY_MEMORY_HINDSIGHT_VENV"

# A database for one test run: quick and small, and no matter if the power fails.
DATABASE_SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "jit=off",
    "max_connections=50",
    "shared_buffers=64MB",
)


def default_venv() -> Path:
    """Return the folder of the server's environment: the variable's, or one in the project root."""
    return Path(os.environ.get(VENV_VARIABLE) or PROJECT / ".hindsight-venv")


def ensure_environment(venv: Path) -> Path:
    """Make and fill the server's environment unless it is there and has these pins; return its interpreter."""
    venv = venv.absolute()
    python = venv / "bin" / "python"
    stamp = venv / "pins.sha256"
    wanted = hashlib.sha256(PINS.read_bytes()).hexdigest()
    venv.mkdir(parents=True, exist_ok=True)
    with (venv / "fill.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs may meet here
        if not stamp.exists() or stamp.read_text() != wanted:
            subprocess.run([sys.executable, "-m", "venv", venv], check=True, stdout=sys.stderr)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
            subprocess.run([*pip, "--no-deps", "-r", PINS], check=True, stdout=sys.stderr)
            stamp.write_text(wanted)
    return python


def free_port() -> int:
    """Return a loopback port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Database:
    """A throw-away PostgreSQL with pgvector, out of the wheel of ``pg0``."""

    def __init__(self, python: Path, home: Path) -> None:
        self.home = home
        self.port = free_port()
        self.password = secrets.token_hex(8)
        self.pid_file = home / ".pg0" / "instances" / "tests" / "data" / "postmaster.pid"
        home.mkdir()
        # A copy, because the environment may lie where the unprivileged user cannot read.
        where = "import pathlib, pg0; print(pathlib.Path(pg0.__file__).with_name('bin') / 'pg0')"
        original = subprocess.run([python, "-c", where], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.program = Path(shutil.copy(original, home / "pg0"))
        self.program.chmod(0o755)

    @property
    def url(self) -> str:
        return f"postgresql://tests:{self.password}@127.0.0.1:{self.port}/tests"

    def start(self) -> None:
        as_user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
            as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        command = [self.program, "start", "--name", "tests", "--database", "tests", "--username", "tests"]
        command += ["--password", self.password, "--port", str(self.port)]
        for setting in DATABASE_SETTINGS:
            command += ["-c", setting]
        # A file, not a pipe: the database inherits it and would keep a pipe open.
        log = self.home / "pg0.log"
        with log.open("wb") as output:
            ended = subprocess.run(
                command,
                check=False,
                cwd=self.home,
                env={"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                timeout=120,
                **as_user,
            )
        if ended.returncode != 0:
            raise RuntimeError(f"PostgreSQL did not start ({ended.returncode}): {log.read_text(errors='replace')}")

    def stop(self) -> None:
        guardian.end_by_file(self.pid_file, signal.SIGQUIT, patience=5)


class HindsightServer:
    """The API server over a database: it can be killed, frozen and started again on the same data and port."""

    def __init__(
        self, python: Path, directory: Path, database: Database, stub: OpenAIStub, api_key: str | None
    ) -> None:
        self.api_key = api_key
        self.stub = stub
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.log = directory / "server.log"
        self.python = python
        self._home = directory / "home"
        self._pid_file = directory / "server.pid"
        self._environment = server_environment(self._home, database.url, stub.url, api_key)
        self._process: subprocess.Popen[bytes] | None = None
        self._home.mkdir()
        # The server obeys the nearest .env above its working directory; an empty one ends that search.
        (self._home / ".env").touch()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self, patience: float = 120) -> None:
        """Start the server and wait until it says that it is healthy."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [self.python, "-m", "hindsight_api.main", "--host", "127.0.0.1", "--port", str(self.port)],
                cwd=self._home,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._pid_file.write_text(str(self._process.pid))
        deadline = time.monotonic() + patience
        while self._health() != "healthy":
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the Hindsight server did not come up; its log ends with:\n{self.log_end()}")
            time.sleep(0.05)

    def freeze(self) -> None:
        """Stop the server in its tracks: connections are taken by the kernel, answers never come."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the server at once, as a crash would; the database goes on."""
        self.process.kill()
        self.process.wait()
        self._pid_file.unlink()
        self._process = None

    def stop(self) -> None:
        """Ask the server to end, and kill it if it takes its time; harmless when it is not running."""
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self.kill()

    def log_end(self, characters: int = 4000) -> str:
        return self.log.read_text(errors="replace")[-characters:]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.base_url + path, timeout=5) as answer:
            return json.load(answer)

    def _health(self) -> str | None:
        try:
            status: str = self.get("/health")["status"]
        except (OSError, ValueError):
            return None
        return status


def server_environment(home: Path, database_url: str, model_url: str, api_key: str | None) -> dict[str, str]:
    """Return the whole environment of the server: hardly anything of ours, so that runs are alike."""
    settings = {
        "HOST": "127.0.0.1",  # it would listen on every interface
        "LOG_LEVEL": "warning",
        "DATABASE_URL": database_url,
        "DB_POOL_MIN_SIZE": "2",
        "DB_POOL_MAX_SIZE": "20",
        "WORKER_ID": "tests",
        "WORKER_POLL_INTERVAL_MS": "100",
        "BANK_STATS_CACHE_TTL_SECONDS": "0",
        "MCP_ENABLED": "false",
        "LOOP_WATCHDOG_ENABLED": "false",
        "LLM_TRACE_ENABLED": "false",
        # Items stay as written, and nothing is derived from them behind a test's back.
        "RETAIN_EXTRACTION_MODE": "chunks",
        "ENABLE_OBSERVATIONS": "false",
        # The stand-in is the model for everything; ranking needs none.
        "LLM_PROVIDER": "openai",
        "LLM_MODEL": "stand-in",
        "LLM_BASE_URL": model_url,
        "LLM_API_KEY": "none",
        "LLM_MAX_RETRIES": "1",
        "SKIP_LLM_VERIFICATION": "true",
        "EMBEDDINGS_PROVIDER": "openai",
        "EMBEDDINGS_OPENAI_MODEL": "stand-in",
        "EMBEDDINGS_OPENAI_BASE_URL": model_url,
        "EMBEDDINGS_OPENAI_API_KEY": "none",
        "EMBEDDINGS_OPENAI_DIMENSIONS": str(DIMENSIONS),
        "RERANKER_PROVIDER": "rrf",
    }
    if api_key:
        settings["TENANT_EXTENSION"] = "hindsight_api.extensions.builtin.tenant:ApiKeyTenantExtension"
        settings["TENANT_API_KEY"] = api_key
    inherited = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {
        **inherited,
        "HOME": str(home),
        "TZ": "UTC",
        "NO_PROXY": "127.0.0.1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else a price list is fetched
        **{f"HINDSIGHT_API_{name}": value for name, value in settings.items()},
    }


@contextmanager
def guarded_directory() -> Iterator[Path]:
    """Give a temporary directory that is cleaned up even if this process is killed."""
    directory = Path(tempfile.mkdtemp(prefix="hindsight-"))
    directory.chmod(0o711)  # the database's user must be able to pass through
    watch = subprocess.Popen(
        [sys.executable, "-I", guardian.__file__, directory], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        watch.communicate()


@contextmanager
def running_server(venv: Path, *, api_key: str | None = None) -> Iterator[HindsightServer]:
    """Run a server from the environment in ``venv`` (filled if need be) for the time of the block."""
    python = ensure_environment(venv)
    with guarded_directory() as directory, OpenAIStub() as stub, contextlib.ExitStack() as stack:
        database = Database(python, directory / "database")
        stack.callback(database.stop)
        database.start()
        server = HindsightServer(python, directory, database, stub, api_key)
        stack.callback(server.stop)
        server.start()
        yield server


def report(server: HindsightServer, seconds: Mapping[str, float]) -> str:
    """Return the line that tells another program where the server is."""
    facts = {"base_url": server.base_url, "api_key": server.api_key, "version": server.get("/version")["api_version"]}
    return json.dumps({**facts, "pid": server.process.pid, "seconds": seconds})


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a real Hindsight server for tests until standard input closes.")
    parser.add_argument("--venv", type=Path, default=default_venv(), help=f"default: ${VENV_VARIABLE}")
    parser.add_argument("--install-only", action="store_true", help="make and fill the environment, then end")
    parser.add_argument("--api-key", help="the bearer token that every bank route then wants")
    options = parser.parse_args()
    began = time.monotonic()
    ensure_environment(options.venv)
    seconds = {"environment": round(time.monotonic() - began, 1)}
    if options.install_only:
        print(json.dumps({"venv": str(options.venv), "seconds": seconds}))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    began = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt), running_server(options.venv, api_key=options.api_key) as server:
        seconds["start"] = round(time.monotonic() - began, 1)
        print(report(server, seconds), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
