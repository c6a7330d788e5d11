"""How a value becomes something to display: HTML in which memory text is only text, and lines that steer nothing.

Memory text may come from anyone. What is displayed passes through here; no stored value is changed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any

from ipy_memory.jscompat import strings as js

_ZERO_WIDTH = "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_DIRECTION = "\u202a-\u202e\u2066-\u206f"
# The two joiners belong to words of some scripts and to emoji; between or beside ASCII characters they only hide.
_JOINER = "(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
_STEERING = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_DIRECTION}{_ZERO_WIDTH}]|{_JOINER}")

# HTML is often kept inside Markdown, some readers of which look for links, images and formulas within elements too.
_MARKDOWN = re.compile(r"[\[\]`*_~$\\@]|:(?=//)|(?<=www)\.", re.IGNORECASE)

_PARTS = re.compile(r"<style.*?</style>|<[^>]*>|[^<]+", re.DOTALL)
_LATEX = {character: f"\\{character}" for character in "&%$#_{}"}
_LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def visible(text: str) -> str:
    """Return text in which characters that steer a terminal, hide, or turn the direction are shown by their number."""
    return _STEERING.sub(lambda found: f"\u27e8U+{ord(found.group()):04X}\u27e9", js.well_formed(text))


def escaped(text: str) -> str:
    """Return text as HTML that neither runs nor steers anything, inside a Markdown document either."""
    return _MARKDOWN.sub(lambda found: f"&#{ord(found.group())};", html.escape(visible(text)))


def escaped_value(value: Any, escape: Callable[[str], str] = escaped) -> Any:
    """Return a cell's value with every text in it escaped; numbers, dates and missing values stay as they are.

    Parameters
    ----------
    value
        A text, a container of texts at any depth, or anything else that pandas can hold.
    escape
        What makes a harmless text of any text; for HTML by default.
    """
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, bytes):
        return escape(repr(value))
    if isinstance(value, Mapping):
        return {escaped_value(key, escape): escaped_value(item, escape) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(escaped_value(item, escape) for item in value)
    if isinstance(value, list):
        return [escaped_value(item, escape) for item in value]
    if isinstance(value, set | frozenset):
        return {escaped_value(item, escape) for item in value}
    shown = str(value)
    # A number or a date prints nothing that has a meaning in markup; any other object is shown by its escaped text.
    return value if escape(shown) == shown else escape(shown)


def escaped_page(page: str) -> str:
    """Return HTML whose texts are escaped already as HTML that a Markdown document can hold too."""

    def part(found: re.Match[str]) -> str:
        text = found.group()
        return text if text.startswith("<") else _MARKDOWN.sub(lambda one: f"&#{ord(one.group())};", text)

    return _PARTS.sub(part, visible(page))


def latex_text(text: str) -> str:
    """Return text that LaTeX prints and does not obey."""
    return "".join(_LATEX.get(character, character) for character in visible(text))


def typst_text(text: str) -> str:
    """Return text that Typst prints and does not obey."""
    return "".join(f"\\{c}" if c.isascii() and not (c.isalnum() or c.isspace()) else c for c in visible(text))


def css_text(text: str) -> str:
    """Return text for a style sheet inside an HTML page: it can neither end its string nor the style element."""
    return "".join(c if c.isalnum() or c == " " else f"\\{ord(c):06x}" for c in visible(text))
