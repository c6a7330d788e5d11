"""A language model behind an OpenAI-compatible endpoint, for reading facts (``mnemopi.llmMode`` = ``remote``)."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.embeddings.openai_api import Endpoint, shown
from ipy_memory.backends.mnemopi.store.extraction import parse_answer, plain_answer
from ipy_memory.errors import MemoryToolkitError

if TYPE_CHECKING:
    from ipy_memory.http.exchange import Transport
    from ipy_memory.settings.resolve import MnemopiConfig

_log = logging.getLogger("ipy_memory.backends.mnemopi")

_REQUEST = {"max_tokens": 2048, "temperature": 0, "stop": ["</s>", "<|user|>"]}
"""What the real engine asks of a model beside the prompt."""

COMPLETION_SECONDS = 60.0
"""How long a model may take to answer, with all attempts."""


class RemoteCompletion:
    """Asks a chat model; called with a prompt, gives its answer, JSON and nothing else.

    Parameters
    ----------
    model
        The model's name.
    url
        The endpoint's base; ``/chat/completions`` is added.
    api_key
        Sent as a bearer token if not empty.
    transport
        Another way to the network (tests).
    """

    def __init__(
        self,
        model: str,
        url: str,
        api_key: str | None = None,
        *,
        transport: Transport | None = None,
    ) -> None:
        self.model = model
        self.place = shown(url)
        self._endpoint = Endpoint(url, api_key, transport=transport)

    def __call__(self, prompt: str) -> str | None:
        """Return the answer without the model's reasoning; ``None``, and a line in the log, where there is none.

        Raises
        ------
        MemoryToolkitError
            The answer is not the JSON that was asked for: then nothing is to be stored of it.
        """
        reply = self._endpoint.post(
            "/chat/completions",
            {"model": self.model, "messages": [{"role": "user", "content": prompt}], **_REQUEST},
            until=self._endpoint.clock() + COMPLETION_SECONDS,
        )
        said = _said(reply.body) if reply.body is not None else None
        if said is None:
            reason = reply.problem if reply.body is None else "its answer cannot be read"
            _log.warning("Mnemopi: the language model gave no facts: model=%s error=%s", self.model, reason)
            return None
        answer = plain_answer(said)
        if parse_answer(answer) and not _is_json(answer):
            raise MemoryToolkitError(
                "The language model's answer is not the JSON that was asked for.",
                where=f"{self.model}, {self.place}",
                hint="see mnemopi.llmBaseUrl",
            )
        return answer

    def close(self) -> None:
        """Release the connection."""
        self._endpoint.close()


def configured_completion(config: MnemopiConfig) -> RemoteCompletion | None:
    """Return the language model that the settings name, or ``None``: then nothing is sent anywhere."""
    url, model = config.llm_base_url, config.llm_model
    if config.llm_mode != "remote" or not url or not model:
        return None
    return RemoteCompletion(model, url, config.llm_api_key)


def _said(body: str | bytes) -> str | None:
    try:
        said = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return said if isinstance(said, str) else None


def _is_json(answer: str) -> bool:
    if not answer.startswith(("{", "[")):
        return False
    try:
        json.loads(answer)
    except (ValueError, RecursionError):
        return False
    return True
