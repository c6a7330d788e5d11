"""Cells of a bank's tables, read as what they should be, whatever a foreign file holds."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from ipy_memory.jscompat import strings as js

if TYPE_CHECKING:
    from collections.abc import Iterable


def as_text(value: object) -> str | None:
    """Return a cell as text, ``None`` where it is empty."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def number_or(value: object, otherwise: float) -> float:
    """Return a cell as the number that the real engine takes it for: none is 0, and what is no number ``otherwise``."""
    if value is None:
        return 0
    if isinstance(value, bytes):
        value = ",".join(map(str, value))
    found = js.to_number(value) if isinstance(value, str) else value
    return found if isinstance(found, int | float) and math.isfinite(found) else otherwise


def as_number(value: object) -> float | None:
    """Return a cell as a number, ``None`` where it is none."""
    return value if isinstance(value, int | float) else None


def as_whole(value: object) -> int | None:
    """Return a cell as a whole number, ``None`` where it is none."""
    return value if isinstance(value, int) else None


def json_list(values: Iterable[object]) -> str:
    """Return values as a JSON list, for ``json_each``."""
    return json.dumps(list(values), ensure_ascii=False, default=lambda _: None)
