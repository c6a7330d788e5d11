"""Record what a real Hindsight server answers to the notebooks: ``python -m notebooks.record [NAME ...]``.

Each notebook that plays recorded exchanges (``demo.start(hindsight=NAME)``) is run once against a real server, which
the tests' own module starts, and every exchange is written to the package's folder of recordings. The outputs of the
notebooks are then refreshed by ``notebooks.refresh`` as always.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx

from ipy_memory.demo import SERVER_VARIABLE
from ipy_memory.replay import FOLDER, JsonHandler
from notebooks.refresh import chosen, notebooks, run
from tests.services.hindsight_server import HindsightServer, default_venv, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ANSWER = "The shop is deployed to Hetzner, region fra, after an announcement in the ops channel."
"""What the server's stand-in for a language model says to every question."""

PATIENCE_SECONDS = 60
_NAMED = re.compile(r'demo\.start\(hindsight="(\w+)"\)')


def recording_of(path: Path) -> str | None:
    """Return the name of the recording that a notebook plays."""
    found = _NAMED.search(path.read_text(encoding="utf-8").replace('\\"', '"'))
    return found and found.group(1)


class Recorder(ThreadingHTTPServer):
    """Passes requests on to a real server, and keeps them with their answers.

    A retain is answered when the server has done the work behind it, so that the next recall finds what was stored.
    """

    daemon_threads = True

    def __init__(self, server: HindsightServer) -> None:
        self.exchanges: list[dict[str, Any]] = []
        self._http = httpx.Client(base_url=server.base_url, headers=server.headers, timeout=PATIENCE_SECONDS)
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def pass_on(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        answer = self._http.request(method, path, json=body) if body is not None else self._http.request(method, path)
        parsed = answer.json()
        self.exchanges.append(
            {"method": method, "path": path, "body": body, "status": answer.status_code, "answer": parsed}
        )
        if method == "POST" and isinstance(parsed, dict) and parsed.get("operation_id"):
            self._wait(f"{path.removesuffix('/memories')}/operations/{parsed['operation_id']}")
        return answer.status_code, parsed

    def _wait(self, path: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._http.get(path).json()["status"] != "completed":
            if time.monotonic() > deadline:
                raise TimeoutError(path)
            time.sleep(0.05)

    def forget(self) -> None:
        """Delete the banks that were used, on the server."""
        used = {exchange["path"].split("/")[4] for exchange in self.exchanges}
        for bank in sorted(used):
            self._http.delete(f"/v1/default/banks/{bank}")

    def server_close(self) -> None:
        super().server_close()
        self._http.close()


class _Handler(JsonHandler):
    server: Recorder

    def respond(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        return self.server.pass_on(method, path, body)


@contextmanager
def recorder(server: HindsightServer) -> Iterator[Recorder]:
    """Run a recorder in front of a server; the banks that were used are deleted at the end."""
    made = Recorder(server)
    thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
        made.forget()
    finally:
        made.shutdown()
        made.server_close()
        thread.join()


def main(names: Sequence[str]) -> int:
    """Record the exchanges of the notebooks that are meant."""
    meant = [path for path in (chosen(names) if names else notebooks()) if recording_of(path)]
    FOLDER.mkdir(exist_ok=True)
    with running_server(default_venv()) as server:
        server.stub.answer = ANSWER
        version = server.get("/version")["api_version"]
        for path in meant:
            with recorder(server) as made:
                run(path, {SERVER_VARIABLE: made.url})
            content = {"server": f"Hindsight {version}", "exchanges": made.exchanges}
            target = FOLDER / f"{recording_of(path)}.json"
            target.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(f"{path.name}: {len(made.exchanges)} exchanges")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
