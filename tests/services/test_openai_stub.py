"""The stand-in model: what the real server needs of it."""

from __future__ import annotations

import base64
import json
import threading
from array import array
from typing import Any

import httpx
import pytest

from tests.services.openai_stub import OpenAIStub, tool_call, vector


def cosine(a: str, b: str) -> float:
    return sum(x * y for x, y in zip(vector(a), vector(b), strict=True))


def chat(*messages: dict[str, Any], tools: tuple[str, ...] = (), choice: Any = "auto") -> dict[str, Any]:
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    return {"model": "m", "messages": list(messages), "tools": offered, "tool_choice": choice}


QUESTION = {"role": "user", "content": "Where do we deploy?"}
FOUND = {"role": "tool", "content": "to the north cluster"}


def test_texts_that_share_words_are_closer_than_others() -> None:
    deploy = "the deploy target is the north cluster"
    assert cosine(deploy, "deploy target north") > 0.5 > cosine(deploy, "Anna prefers tea")
    assert cosine("!", "?") == pytest.approx(1)


def test_embeddings_come_as_floats_or_as_base64() -> None:
    with OpenAIStub() as stub, httpx.Client(base_url=stub.url) as client:
        body = {"model": "m", "input": ["one", "two"], "dimensions": 8}
        plain = client.post("/embeddings", json=body).json()["data"]
        packed = client.post("/embeddings", json={**body, "encoding_format": "base64"}).json()["data"]
    assert [list(array("f", base64.b64decode(entry["embedding"]))) for entry in packed] == [
        pytest.approx(entry["embedding"], rel=1e-6) for entry in plain
    ]
    assert [len(entry["embedding"]) for entry in plain] == [8, 8]
    assert [path for path, _ in stub.requests] == ["/v1/embeddings"] * 2


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (chat(QUESTION), None),
        (chat(QUESTION, tools=("recall", "done"), choice="none"), None),
        (chat(QUESTION, tools=("search", "recall", "done")), "recall"),
        (chat(QUESTION, FOUND, tools=("recall", "done")), "done"),
        (chat(QUESTION, FOUND, tools=("recall",)), None),
        (chat(QUESTION, FOUND, tools=("recall",), choice="required"), "recall"),
        (chat(QUESTION, tools=("search", "recall"), choice={"function": {"name": "search"}}), "search"),
        (chat(QUESTION, tools=("done",), choice="required"), "done"),
    ],
)
def test_it_calls_the_tools_that_the_server_wants_called(body: dict[str, Any], name: str | None) -> None:
    call = tool_call(body, "the answer")
    assert (call and call[0]) == name
    if call and name != "done":
        assert call[1]["query"] == "Where do we deploy?"


def test_an_answer_without_tools_is_text() -> None:
    with OpenAIStub("as asked") as stub:
        message = httpx.post(f"{stub.url}/chat/completions", json=chat(QUESTION)).json()["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "as asked"}


def test_a_fault_lasts_as_long_as_its_block() -> None:
    with OpenAIStub() as stub:
        body = {"model": "m", "input": "one"}
        with stub.fault("/embeddings", status=503) as fault:
            assert not fault.reached.is_set()
            assert httpx.post(f"{stub.url}/embeddings", json=body).status_code == 503
            assert fault.reached.is_set()
            assert httpx.post(f"{stub.url}/chat/completions", json=chat(QUESTION)).status_code == 200
        assert httpx.post(f"{stub.url}/embeddings", json=body).status_code == 200


def test_a_held_request_is_answered_when_released() -> None:
    answers: list[str] = []
    with OpenAIStub() as stub:
        with stub.fault("/embeddings", hold=True) as fault:
            asking = threading.Thread(
                target=lambda: answers.append(
                    httpx.post(f"{stub.url}/embeddings", json={"model": "m", "input": "x"}).text
                )
            )
            asking.start()
            assert fault.reached.wait(10)
            assert answers == []
            fault.release()
            asking.join(10)
        assert json.loads(answers[0])["object"] == "list"
