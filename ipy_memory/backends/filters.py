"""What a user narrows a recall down to: one frozen value, which a backend honours as a whole or refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from ipy_memory.errors import NotSupportedError, ToolInputError
from ipy_memory.jscompat.dates import covered, iso, shown_stamp

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

TYPES = ("world", "experience", "observation")
"""The kinds of memories that Hindsight servers know."""

BUDGETS = ("low", "mid", "high")
"""How thoroughly a Hindsight server can search."""

_TIMES = ("since", "until", "at")


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """Which memories a recall may give, and how they are scored; each field is the flag of its name.

    Made by :meth:`of`, which reads and checks what a user gives.

    Attributes
    ----------
    source, author
        Who stored a memory, and the id of its author.
    since, until
        The first and the last instant at which it was stored.
    at
        The instant that stands for now: ages are counted from it, and what ends is compared with it.
    tag
        A memory has all of these.
    type
        It is of one of these.
    budget, tokens
        How thoroughly a server searches, and how much text it gives.
    """

    source: str | None = None
    author: str | None = None
    since: str | None = None
    until: str | None = None
    at: str | None = None
    tag: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    budget: str | None = None
    tokens: int | None = None

    @classmethod
    def of(cls, given: Self | Mapping[str, Any] | None) -> Self | None:
        """Return filters as they are compared; ``None`` where nothing is asked for.

        Parameters
        ----------
        given
            Times as text (UTC without a zone) or objects of datetime, pandas or NumPy; tags and types as one text
            with commas, or as several.

        Raises
        ------
        ToolInputError
            There is no such filter, or its value cannot be read; the hint says what is valid.
        """
        if not isinstance(given, Mapping):
            given = {} if given is None else given.given
        if unknown := [name for name in given if name not in _READ]:
            raise ToolInputError(f"recall: there is no filter {unknown[0]!r}.", hint=f"there are {', '.join(_READ)}")
        read = {name: _READ[name](name, value) for name, value in given.items() if value is not None}
        made = cls(**read)
        return made if made.given else None

    @property
    def given(self) -> dict[str, Any]:
        """What is asked for, by name."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, ())}

    @property
    def chooses_rows(self) -> bool:
        """Whether memories are left out by who stored them or when."""
        return any(name in self.given for name in ("source", "author", "since", "until"))

    @property
    def note(self) -> str:
        """What is said beside the answer."""
        asked = " ".join(f"--{name} {_shown(name, value)}" for name, value in self.given.items())
        return f"Asked with {asked}, which the agent does not do; nothing was counted."

    def check(self, who: str, honoured: AbstractSet[str]) -> None:
        """Raise :class:`NotSupportedError` where a flag is asked for that ``who`` does not honour."""
        for name in self.given:
            if name not in honoured:
                can = ", ".join(f"--{one}" for one in _READ if one in honoured)
                raise NotSupportedError(
                    f"{who} does not support --{name} in a recall.",
                    hint=f"what it can do is {can}" if can else "ask without it",
                )


def instant(what: str, name: str, value: object) -> str:
    """Return the first instant of a date or time, or the last one for ``until`` and ``at``."""
    text = value.isoformat(timespec="microseconds") if isinstance(value, datetime) else str(value)
    if (found := covered(text)) is None:
        raise ToolInputError(
            f"{what}: {name!r} takes a date or time, not {text!r}.",
            hint="such as 2026-05-31 or 2026-05-31T14:00+02:00; UTC without a zone",
        )
    return iso(found[name != "since"])


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ToolInputError(f"recall: {name!r} takes a text, not {value!r}.", hint="write it in quotes")
    return value


def _texts(name: str, value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) and part.strip() for part in parts):
        raise ToolInputError(f"recall: {name!r} takes names, not {value!r}.", hint="separate several by commas")
    return tuple(dict.fromkeys(part.strip() for part in parts))


def _types(name: str, value: object) -> tuple[str, ...]:
    return tuple(_one_of(name, one, TYPES) for one in _texts(name, value))


def _budget(name: str, value: object) -> str:
    return _one_of(name, value, BUDGETS)


def _one_of(name: str, value: object, choices: Sequence[str]) -> str:
    if value not in choices:
        raise ToolInputError(f"recall: {name!r} cannot be {value!r}.", hint=f"valid are {', '.join(choices)}")
    return str(value)


def _count(name: str, value: object) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ToolInputError(f"recall: {name!r} takes a whole number, not {value!r}.", hint="at least 1")
    return int(value)


def _moment(name: str, value: object) -> str:
    return instant("recall", name, value)


_READ: Mapping[str, Callable[[str, object], Any]] = {
    "source": _text,
    "author": _text,
    **dict.fromkeys(_TIMES, _moment),
    "tag": _texts,
    "type": _types,
    "budget": _budget,
    "tokens": _count,
}


def _shown(name: str, value: Any) -> str:
    if name in _TIMES:
        return f"{shown_stamp(value, None)} UTC"
    return ",".join(value) if isinstance(value, tuple) else str(value)
