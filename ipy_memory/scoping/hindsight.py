"""Which Hindsight bank a session uses, and by which tags it tells projects apart (pure but for the project label)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.jscompat.strings import trim
from ipy_memory.scoping import check_scoping
from ipy_memory.scoping.project import project_label

if TYPE_CHECKING:
    from ipy_memory.settings.resolve import HindsightConfig

DEFAULT_BANK = "omp"


@dataclass(frozen=True, slots=True)
class HindsightScope:
    """A bank and the tags in force; ``None`` where the mode has no tags."""

    bank_id: str
    retain_tags: tuple[str, ...] | None = None
    recall_tags: tuple[str, ...] | None = None
    tags_match: str | None = None


def hindsight_scope(config: HindsightConfig, cwd: str, *, process_cwd: str | None = None) -> HindsightScope:
    """Return the bank and tags of a directory (S-01 to S-05)."""
    scoping = check_scoping(config.scoping)
    base = "-".join(filter(None, (trim(config.bank_id_prefix), trim(config.bank_id or "") or DEFAULT_BANK)))
    if scoping == "global":
        return HindsightScope(base)
    label = project_label(cwd, process_cwd)
    if scoping == "per-project":
        return HindsightScope(f"{base}-{label}")
    tags = (f"project:{label}",)
    return HindsightScope(base, retain_tags=tags, recall_tags=tags, tags_match="any")
