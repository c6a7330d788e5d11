"""A player of recorded exchanges with a real Hindsight server, for notebooks and documentation.

It listens on the loopback interface and gives each request the answer that the real server gave to the same one, in
the order in which they were given. What was not recorded it refuses, in words.
"""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ipy_memory.errors import MemoryToolkitError

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).with_name("fixtures")
"""One file for each recording: ``{"server": …, "exchanges": [{method, path, body, status, answer}]}``."""

_NOT_RECORDED = "This request is not among the recorded exchanges; a real server would answer it."


def names() -> list[str]:
    """Return the names of all recordings."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(name: str) -> list[dict[str, Any]]:
    """Return the exchanges of a recording.

    Raises
    ------
    MemoryToolkitError
        There is no such recording.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        raise MemoryToolkitError(f"There is no recording {name!r}.", hint=f"there are {', '.join(names())}")
    exchanges: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["exchanges"]
    return exchanges


class Player(ThreadingHTTPServer):
    """Plays one recording on a free port of this machine.

    Parameters
    ----------
    name
        Of the recording.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, name: str) -> None:
        self._answers: dict[str, list[tuple[int, Any]]] = {}
        for exchange in load(name):
            key = _key(exchange["method"], exchange["path"], exchange["body"])
            self._answers.setdefault(key, []).append((exchange["status"], exchange["answer"]))
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), name="ipy-memory-player", daemon=True)

    @property
    def url(self) -> str:
        """Address of the player; its port is another one each time."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Answer no more, and free the port."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return status and body for a request; the last recorded answer to it is repeated."""
        with self._lock:
            answers = self._answers.get(_key(method, path, body))
            if not answers:
                return HTTPStatus.NOT_IMPLEMENTED, {"detail": _NOT_RECORDED}
            return answers.pop(0) if len(answers) > 1 else answers[0]


def _key(method: str, path: str, body: Any) -> str:
    return json.dumps([method, path, body], sort_keys=True)


class JsonHandler(BaseHTTPRequestHandler):
    """Reads JSON requests and writes JSON answers; what to answer is said by :meth:`respond`."""

    protocol_version = "HTTP/1.1"

    def respond(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return status and body."""
        raise NotImplementedError

    def _serve(self) -> None:
        sent = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, answer = self.respond(self.command, self.path, json.loads(sent) if sent else None)
        body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.send_response(status)
        self._headers({"content-type": "application/json", "content-length": str(len(body))})
        self.wfile.write(body)

    def _headers(self, headers: Mapping[str, str]) -> None:
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815  the library's names

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class _Handler(JsonHandler):
    server: Player

    def respond(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        return self.server.answer(method, path, body)
