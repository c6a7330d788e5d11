"""A scored row on its way through a recall, and the hit that it becomes if it is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.recall.rerank import Preview
from ipy_memory.jscompat import strings as js
from ipy_memory.model import Hit, ScoreParts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.backends.mnemopi.recall.row_cache import Stored, Tier


@dataclass(slots=True)
class Found:
    """How a row was found: full-text score, similarity, and which came first."""

    row: Stored
    fts: float = 0.0
    similarity: float = 0.0
    origin: str = "fallback"


class Entry:
    """What choosing needs of a row; its hit is made when it is first asked for, since most are never shown."""

    __slots__ = ("_hit", "_show", "id", "preview", "score", "summary_of", "tier")

    def __init__(
        self,
        tier: str,
        id_: str,
        score: float,
        preview: Preview,
        summary_of: str | None,
        show: Callable[[float, str], Hit],
    ) -> None:
        self.tier = tier
        self.id = id_
        self.score = score
        self.preview = preview
        self.summary_of = summary_of
        self._show = show
        self._hit: Hit | None = None

    @classmethod
    def of(cls, hit: Hit) -> Entry:
        """Return the entry of something that is a hit already."""
        preview = Preview(hit.content)
        return cls(hit.tier or "", hit.id or "", hit.score or 0.0, preview, None, lambda _score, _content: hit)

    @property
    def hit(self) -> Hit:
        """The entry as a hit, always the same one."""
        if self._hit is None:
            self._hit = self._show(self.score, self.preview.text)
        return self._hit


def hit_of(
    how: Found, tier: Tier, bank: str, lexical: float, recency: float, near: float, score: float, content: str
) -> Hit:
    """Return the hit of a row: its columns, the parts of its score, and the content as it is shown."""
    explained = (("keyword", lexical), ("dense", how.similarity), ("temporal", near))
    stored, row = how.row, how.row.row
    return Hit(
        id=stored.id,
        content=content,
        source=row.source,
        timestamp=row.timestamp,
        score=score,
        bank=bank,
        tier=tier.name,
        type=row.memory_type,
        importance=row.importance,
        veracity=row.veracity,
        truncated=content != stored.content,
        full_length=js.units(stored.content),
        session_id=row.session_id,
        scope=row.scope,
        recall_count=row.recall_count,
        last_recalled=row.last_recalled,
        rank=how.fts,
        parts=ScoreParts(
            keyword=js.round4(lexical),
            dense=js.round4(how.similarity),
            fts=js.round4(how.fts),
            importance=js.round4(row.importance),
            recency=js.round4(recency),
            temporal=js.round4(near),
        ),
        explanation=f"{tier.name} {how.origin}"
        + "".join(f" {name}={js.number_text(js.round4(value))}" for name, value in explained if value > 0),
        degradation_tier=row.degradation,
    )
