"""What a person should know of a recall that the server does not say, or says in no words (pure).

All of it comes from the answer and from the request itself: there is no further request (R-23).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ipy_memory.model import Hit
    from ipy_memory.settings.resolve import HindsightConfig

KNOWN_TYPES = ("world", "experience", "observation")
"""The kinds of memories that servers know."""

LONG_QUERY_BYTES = 1_500
"""A server reads 500 tokens of a query; a longer text may have more."""

NARROW_BUDGET = 256
"""Below this many tokens an empty recall may be the budget's doing."""

ODD_ANSWER = "the answer held no {}: check that hindsight.apiUrl is the address of a Hindsight server"

NO_SCORES = "the server sent no scores: those before 0.8.4 send none"
"""Why the columns of scores are empty."""


def recall_notes(
    config: HindsightConfig, query: str, results: Any, hits: Sequence[Hit], textless: int
) -> Iterator[str]:
    """Yield the notes on one recall.

    Parameters
    ----------
    config
        With which it was asked.
    query
        As sent.
    results
        The list of the answer, whatever it is.
    hits, textless
        What was read of it, and how many entries had no text.
    """
    if not isinstance(results, list):
        yield ODD_ANSWER.format("list of memories")
    if textless:
        yield f"{textless} {'entry' if textless == 1 else 'entries'} of the answer had no text"
    if not hits and config.recall_max_tokens < NARROW_BUDGET:
        tokens = js.number_text(config.recall_max_tokens)
        yield f"hindsight.recallMaxTokens is {tokens}: a larger token budget may find more"
    if unknown := [name for name in config.recall_types if name not in KNOWN_TYPES]:
        yield (
            f"hindsight.recallTypes names {', '.join(map(repr, unknown))}, which finds nothing; types are "
            f"{', '.join(KNOWN_TYPES)}"
        )
    if len(js.well_formed(query).encode()) > LONG_QUERY_BYTES:
        yield "the query may be longer than the 500 tokens that a server reads: the rest was not searched for"


def filter_words(tags: Sequence[str] | None, match: str | None) -> str | None:
    """Return the tag filter of a recall in words, ``None`` where there is none."""
    if not tags:
        return None
    return " + ".join(tags) + (" + untagged" if match in {"any", "all"} else " only")
