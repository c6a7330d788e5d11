"""What a bank really holds: the server asked directly, past the code under test."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.services.hindsight_server import HindsightServer

PATIENCE_SECONDS = 60
UNFINISHED = {"pending", "processing"}


def until(what: str, condition: Callable[[], Any]) -> Any:
    """Return the first true answer of a condition; fail when there is none within the deadline."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE_SECONDS} s: {what}")
        time.sleep(0.03)
    return found


class Remote:
    """A view of one server's banks."""

    def __init__(self, server: HindsightServer) -> None:
        self.server = server
        self._http = httpx.Client(base_url=server.base_url, headers=server.headers, timeout=PATIENCE_SECONDS)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        answer = self._http.get(f"/v1/default/banks{path}", params=query)
        answer.raise_for_status()
        return answer.json()

    def banks(self) -> set[str]:
        return {bank["bank_id"] for bank in self.get("", limit=1000)["banks"]}

    def settle(self, bank: str) -> None:
        """Wait until the server has done all the work that it took on for a bank."""

        def settled() -> bool:
            operations = self.get(f"/{bank}/operations", limit=100)["operations"]
            failed = [operation for operation in operations if operation["status"] == "failed"]
            assert failed == []
            return not any(operation["status"] in UNFINISHED for operation in operations)

        until(f"the work on bank {bank} is done", settled)

    def memories(self, bank: str) -> list[dict[str, Any]]:
        """Return everything stored in a bank, once the server is done."""
        self.settle(bank)
        items: list[dict[str, Any]] = self.get(f"/{bank}/memories/list", limit=1000)["items"]
        return items

    def texts(self, bank: str) -> list[str]:
        return sorted(item["text"] for item in self.memories(bank))

    def documents(self, bank: str) -> dict[str, str]:
        """Return the text of every document of a bank, by id."""
        self.settle(bank)
        found = self.get(f"/{bank}/documents", limit=1000)["items"]
        return {item["id"]: self.get(f"/{bank}/documents/{item['id']}")["original_text"] for item in found}
