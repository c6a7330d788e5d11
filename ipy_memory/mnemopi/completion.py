"""A language model behind an OpenAI-compatible endpoint, for reading facts (``mnemopi.llmMode`` = ``remote``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.mnemopi.endpoint import Endpoint, shown
from ipy_memory.mnemopi.extraction import NOTHING, plain_answer

if TYPE_CHECKING:
    from ipy_memory.http import Transport
    from ipy_memory.settings import MnemopiConfig

COMPLETION_SECONDS = 60.0
"""How long a model may take to answer, with all attempts."""


class RemoteCompletion:
    """Asks a chat model; called with a prompt, gives its answer, JSON and nothing else (B021).

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

    def __call__(self, prompt: str) -> str:
        """Return the answer without the model's reasoning.

        Raises
        ------
        MemoryToolkitError
            There is no answer, or it is not the JSON that was asked for: then nothing is to be stored of it.
        """
        reply = self._endpoint.post(
            "/chat/completions",
            {"model": self.model, "messages": [{"role": "user", "content": prompt}]},
            until=self._endpoint.clock() + COMPLETION_SECONDS,
        )
        if reply.body is None:
            raise self._failure(f"The language model did not answer: {reply.problem}.")
        try:
            said = json.loads(reply.body)["choices"][0]["message"]["content"]
        except (ValueError, TypeError, LookupError, RecursionError):
            said = None
        if not isinstance(said, str):
            raise self._failure("The language model's answer cannot be read.")
        answer = plain_answer(said)
        if answer.lower() != NOTHING and not _is_json(answer):
            raise self._failure("The language model's answer is not the JSON that was asked for.")
        return answer

    def close(self) -> None:
        """Let go of the connection."""
        self._endpoint.close()

    def _failure(self, message: str) -> MemoryToolkitError:
        return MemoryToolkitError(message, where=f"{self.model}, {self.place}", hint="see mnemopi.llmBaseUrl")


def configured_completion(config: MnemopiConfig) -> RemoteCompletion | None:
    """Return the language model that the settings name, or ``None``: then nothing is sent anywhere (R-30, T-12)."""
    url, model = config.llm_base_url, config.llm_model
    if config.llm_mode != "remote" or not url or not model:
        return None
    return RemoteCompletion(model, url, config.llm_api_key)


def _is_json(answer: str) -> bool:
    if not answer.startswith(("{", "[")):
        return False
    try:
        json.loads(answer)
    except (ValueError, RecursionError):
        return False
    return True
