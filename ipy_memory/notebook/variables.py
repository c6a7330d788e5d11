"""A user's own variables, as the flags of the magics name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.errors import MagicError

if TYPE_CHECKING:
    from collections.abc import Mapping


def value_of(variables: Mapping[str, Any], name: str) -> Any:
    """Return what a variable holds, or raise :class:`MagicError`."""
    if name not in variables:
        raise MagicError(f"there is no variable {name}", hint="run the cell that makes it, or fix the name")
    return variables[name]


def text_of(variables: Mapping[str, Any], name: str) -> str:
    """Return the text that a variable holds, or raise :class:`MagicError`."""
    value = value_of(variables, name)
    if not isinstance(value, str):
        raise MagicError(
            f"variable {name} holds a {type(value).__name__}, not a text", hint="str() of it may be what is meant"
        )
    return value
