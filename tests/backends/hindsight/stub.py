"""A stand-in for a Hindsight server on the loopback interface: records requests, answers by rules."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Rule = Mapping[str, Any]


class StubServer:
    """The first rule whose conditions hold answers; without one, ``200 {}``.

    A retain that no rule gives an answer is confirmed in the documented form, unless ``terse`` is set. A rule with
    ``drip_seconds`` sends its answer byte by byte, after the first ``fast`` bytes.
    """

    def __init__(self, rules: Sequence[Rule] = (), *, terse: bool = False) -> None:
        self._terse = terse
        self.requests: list[dict[str, Any]] = []
        self.released = threading.Event()
        self._lock = threading.Lock()
        self.answer_with(rules)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer_with(self, rules: Sequence[Rule]) -> None:
        self._rules = [dict(rule) for rule in rules]

    def _take(self, method: str, url: str) -> Rule:
        for rule in self._rules:
            if (
                rule.get("method", method) == method
                and rule.get("url", url) == url
                and url.startswith(rule.get("url_prefix", ""))
                and rule.get("url_contains", "") in url
                and rule.get("times", 1) > 0
            ):
                if "times" in rule:
                    rule["times"] -= 1
                return rule
        return {}

    def _record(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Rule:
        kept = {name: headers[name] for name in ("authorization", "content-type", "user-agent") if name in headers}
        parsed = json.loads(body) if body else None
        with self._lock:
            self.requests.append({"method": method, "url": url, "headers": kept, "body": parsed})
            rule = self._take(method, url)
            silent = rule.get("status", 200) == 200 and not {"body", "text"} & set(rule)
            if silent and method == "POST" and url.endswith("/memories") and not self._terse:
                return {**rule, "body": confirmed(parsed["items"])}
            return rule

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                came = {name.lower(): value for name, value in self.headers.items()}
                rule = stub._record(self.command, self.path, came, self.rfile.read(size))
                if delay := rule.get("delay_ms"):
                    stub.released.wait(delay / 1000)
                raw = rule["text"] if "text" in rule else json.dumps(rule.get("body", {}), ensure_ascii=False)
                body = raw.encode("utf-8", "surrogatepass")
                headers = {
                    "content-type": rule.get("content_type", "application/json"),
                    "content-length": str(len(body)),
                    **rule.get("headers", {}),
                }
                head = f"HTTP/1.1 {rule.get('status', 200)} X\r\n" + "".join(
                    f"{name}: {value}\r\n" for name, value in headers.items()
                )
                try:
                    self._write(f"{head}\r\n".encode() + body, rule.get("drip_seconds"), rule.get("fast", 0))
                except OSError:
                    self.close_connection = True

            def _write(self, answer: bytes, drip: float | None, fast: int) -> None:
                if drip is None:
                    self.wfile.write(answer)
                    return
                self.wfile.write(answer[:fast])
                for byte in answer[fast:]:
                    self.wfile.write(bytes([byte]))
                    if stub.released.wait(drip):
                        return

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                return

        return Handler


def confirmed(items: Sequence[Any], **more: Any) -> dict[str, Any]:
    """Return what a server answers that has taken items on; an id of its work only where ``more`` gives one."""
    return {"success": True, "items_count": len(items), "async": True} | more


def until(true: Any, seconds: float = 10.0) -> None:
    """Wait for something another thread does; fails after ``seconds``."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError("did not happen in time")
        threading.Event().wait(0.005)
