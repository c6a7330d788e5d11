"""A stand-in for the model provider that a Hindsight server asks: embeddings and chat.

It speaks the part of the OpenAI protocol that the server uses, from a thread of the test
process, so a test can read what was asked (:attr:`OpenAIStub.requests`) and make it fail or
wait (:meth:`OpenAIStub.fault`).  Vectors are made from the words and letter groups of a
text: texts that share words are close, paraphrases are not.
"""

from __future__ import annotations

import base64
import json
import math
import re
import threading
import zlib
from array import array
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

DIMENSIONS = 384
_HELD_AT_MOST_SECONDS = 120


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return the unit vector of a text; the same text always has the same vector."""
    weights: Counter[str] = Counter()
    for word in re.findall(r"\w+", text.lower()):
        # A long word says more about the topic than a short one, which is mostly grammar.
        weights[word] += min(len(word), 6)
        for start in range(len(word) - 2):
            weights["~" + word[start : start + 3]] += 1
    values = [0.0] * dimensions
    for feature, weight in weights.items():
        checksum = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
        values[checksum % dimensions] += weight if checksum & 0x8000_0000 else -weight
    length = math.hypot(*values)
    if length == 0:
        return [1.0] + [0.0] * (dimensions - 1)
    return [value / length for value in values]


@dataclass
class Fault:
    """What happens to the next requests whose path ends in ``path``.

    ``status`` answers with that HTTP status; ``held`` lets them wait until :meth:`release`.
    ``reached`` is set as soon as the first of them has arrived.
    """

    path: str
    status: int | None = None
    held: threading.Event | None = None
    reached: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        if self.held is not None:
            self.held.set()


class OpenAIStub(ThreadingHTTPServer):
    """The stand-in, listening on a free loopback port while used as a context manager."""

    daemon_threads = True

    def __init__(self, answer: str = "the stand-in model's answer") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._fault: Fault | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), name="openai-stub", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        super().__exit__()

    @contextmanager
    def fault(self, path: str, *, status: int | None = None, hold: bool = False) -> Iterator[Fault]:
        """Make requests to ``path`` (``/embeddings``, ``/chat/completions``) fail or wait, inside the block."""
        self._fault = Fault(path, status, threading.Event() if hold else None)
        try:
            yield self._fault
        finally:
            fault, self._fault = self._fault, None
            fault.release()

    def answer_to(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and body for one request."""
        self.requests.append((path, body))
        fault = self._fault
        if fault is not None and path.endswith(fault.path):
            fault.reached.set()
            if fault.held is not None:
                fault.held.wait(_HELD_AT_MOST_SECONDS)
            if fault.status is not None:
                return fault.status, {"error": {"message": "made to fail by the test", "type": "stand_in"}}
        if path.endswith("/embeddings"):
            return 200, embeddings(body)
        if path.endswith("/chat/completions"):
            return 200, chat_completion(body, self.answer)
        return HTTPStatus.NOT_FOUND, {"error": {"message": f"the stand-in has no {path}"}}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a server killed by a test leaves broken connections behind."""


class _Handler(BaseHTTPRequestHandler):
    server: OpenAIStub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.server.answer_to(self.path, body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing: the requests are kept for the test to look at."""


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Answer an embeddings request, as base64 of little-endian floats if so asked (the SDK's default)."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = []
    for index, text in enumerate(texts):
        values: Any = vector(text, body.get("dimensions") or DIMENSIONS)
        if body.get("encoding_format") == "base64":
            values = base64.b64encode(array("f", values).tobytes()).decode()
        data.append({"object": "embedding", "index": index, "embedding": values})
    tokens = sum(map(len, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body["model"], "data": data, "usage": usage}


def chat_completion(body: dict[str, Any], answer: str) -> dict[str, Any]:
    """Answer a chat request: search once with an offered tool, then say the answer."""
    call = tool_call(body, answer)
    message: dict[str, Any] = {"role": "assistant", "content": None if call else answer}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": f"call_{len(body['messages'])}", "type": "function", "function": function}]
    return {
        "id": "chatcmpl-stand-in",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def tool_call(body: dict[str, Any], answer: str) -> tuple[str, dict[str, Any]] | None:
    """Choose the tool to call and its arguments: the forced one, else ``recall`` once, then ``done``."""
    offered = [tool["function"]["name"] for tool in body.get("tools") or ()]
    choice = body.get("tool_choice")
    if not offered or choice == "none":
        return None
    searched = any(message["role"] == "tool" for message in body["messages"])
    searches = [name for name in offered if name != "done"]
    if isinstance(choice, dict):
        name = choice["function"]["name"]
    elif searches and (not searched or (choice == "required" and "done" not in offered)):
        name = "recall" if "recall" in searches else searches[0]
    elif "done" in offered:
        name = "done"
    else:
        return None
    if name == "done":
        return name, {"answer": answer}
    return name, {"query": last_question(body["messages"]), "reason": "the test wants to know"}


def last_question(messages: list[dict[str, Any]]) -> str:
    """Return the start of the newest user message, which the search is about."""
    asked = [message["content"] for message in messages if message["role"] == "user"]
    return str(asked[-1])[:300] if asked else "anything"
