"""Credentials out of text before it is stored or sent: pure, linear in the length of the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MARK = "[REDACTED]"
"""What stands in the place of a credential."""

_SHORTEST = 15
"""What a credential with its keyword or its prefix has at least."""

_RUN = re.compile(rf"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{{{_SHORTEST},}}+")
_DELIMITER = re.compile(r"[_-]")
_KEYWORD = re.compile(r"(?:password|secret|token|key|tok|sk|pk|rk)\Z")
_SEGMENT = "[A-Za-z0-9_-]{16,}+"
# The first segment counts from its dot backwards, so a match can only begin where a run begins.
_JWT = re.compile(rf"(?<![A-Za-z0-9_-]){_SEGMENT}\.{_SEGMENT}\.{_SEGMENT}")
_PREFIXED = (
    re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"github_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"npm_[A-Za-z0-9]{30,}"),
    re.compile(r"xox[baprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"AIza[A-Za-z0-9_-]{30,}"),
)


def redact(text: str) -> str:
    """Return the text with every credential-shaped part replaced."""
    return redact_counted(text)[0]


def redact_counted(text: str) -> tuple[str, int]:
    """Return the redacted text and how many parts were replaced."""
    if len(text) < _SHORTEST:
        return text, 0
    count = 0

    def run(match: re.Match[str]) -> str:
        nonlocal count
        start = _credential_start(match.group())
        if start is None:
            return match.group()
        count += 1
        return match.group()[:start] + MARK

    text = _RUN.sub(run, text)
    for pattern in (_JWT, *_PREFIXED):
        text, found = pattern.subn(MARK, text)
        count += found
    return text, count


def redact_value(value: Any) -> tuple[Any, int]:
    """Return a metadata value with every text in it redacted, at any depth, and the count; keys stay."""
    if isinstance(value, str):
        return redact_counted(value)
    if isinstance(value, Mapping):
        pairs = {key: redact_value(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, sum(found for _, found in pairs.values())
    if isinstance(value, list | tuple):
        items = [redact_value(item) for item in value]
        return [item for item, _ in items], sum(found for _, found in items)
    return value, 0


def _credential_start(run: str) -> int | None:
    """Return where the keyword of a credential begins in a run of token characters."""
    credentials = [match.start() for match in re.finditer(r"[A-Za-z0-9]+", run) if _is_credential(match.group())]
    if not credentials:
        return None
    for delimiter in _DELIMITER.finditer(run, 0, credentials[-1]):
        at = delimiter.start()
        # No keyword is longer than eight characters, so the search need not look further back.
        if keyword := _KEYWORD.search(run[max(0, at - 8) : at]):
            return max(0, at - 8) + keyword.start()
    return None


def _is_credential(segment: str) -> bool:
    if segment.isalpha() or segment.isdigit():
        return len(segment) >= 16
    return len(segment) >= 12
