"""What a text that a user stores keeps out of memory: its private parts, and credentials that the user did not mean.

For the user's own commands; the agent's tool stores what it is given, less what :mod:`ipy_memory.redact` takes out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ipy_memory.credentials import shapes, without_credentials
from ipy_memory.errors import CredentialError, MagicError
from ipy_memory.redact import MARK, redact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.model import RetainItem

_TAG = re.compile(r"<(/?)private>", re.IGNORECASE)


def without_private(text: str) -> tuple[str, int]:
    """Return a text without its closed ``<private>`` parts, and how many there were; parts within parts are one."""
    opened: list[int] = []
    closed: list[tuple[int, int]] = []
    for tag in _TAG.finditer(text):
        if not tag[1]:
            opened.append(tag.start())
        elif opened:
            begin = opened.pop()
            while closed and closed[-1][0] > begin:
                closed.pop()
            closed.append((begin, tag.end()))
    ends = [0, *(end for _, end in closed)]
    begins = [*(begin for begin, _ in closed), len(text)]
    return "".join(text[end:begin] for end, begin in zip(ends, begins, strict=True)), len(closed)


def for_memory(items: Sequence[RetainItem], flags: Mapping[str, Any]) -> tuple[list[RetainItem], list[str]]:
    """Return the items that a user's command may store, and what to say of what was left out.

    Parameters
    ----------
    items
        What was typed.
    flags
        ``redact`` stores what looks like a credential as a mark, ``keep`` stores it as it is.

    Raises
    ------
    CredentialError
        An item would hold a credential, and neither flag is given.
    MagicError
        Nothing is left to store, or both flags are given.
    """
    if "redact" in flags and "keep" in flags:
        raise MagicError("--redact and --keep exclude each other", hint="leave one of the two flags out")
    kept, parts, marks = [], 0, 0
    for item in items:
        content, here = without_private(item.content)
        context, there = without_private(item.context or "")
        parts += here + there
        if here and not content.strip():
            continue
        if "redact" in flags:
            content, here = without_credentials(content)
            context, there = without_credentials(context)
            marks += here + there
        kept.append(replace(item, content=content, context=context if item.context is not None else None))
    if not kept and items:
        raise MagicError("all of it is private: there is nothing to store", hint="only closed <private> parts are")
    if "keep" not in flags and (found := _held(kept)):
        raise CredentialError(
            f"Nothing was stored: the text seems to hold {' and '.join(found)}.",
            hint="%retain --redact stores it without, %retain --keep as it is",
        )
    notes = []
    if parts:
        notes.append(f"{parts} private {'part was' if parts == 1 else 'parts were'} left out.")
    if marks:
        notes.append(f"{marks} {'part' if marks == 1 else 'parts'} that looked like a credential became {MARK}.")
    return kept, notes


def _held(items: Sequence[RetainItem]) -> tuple[str, ...]:
    """Return which kinds of credential would be stored; what is taken out of every text does not count."""
    texts = (text for item in items for text in (item.content, item.context or ""))
    return tuple(
        dict.fromkeys(kind for text in texts if without_credentials(text)[0] != redact(text) for kind in shapes(text))
    )
