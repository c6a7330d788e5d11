"""The short form in which sleep writes summaries: fixed words and phrases become signs (pure).

The tables are the real system's; every step is a plain, case-sensitive replacement of all occurrences.
"""

from __future__ import annotations

import re

from ipy_memory.jscompat import strings as js

_CATEGORIES = (
    ("PREFERENCE", "PREF"),
    ("TRAIT", "TRAIT"),
    ("STATUS", "STAT"),
    ("INSTRUCTION", "INST"),
    ("PROJECT", "PROJ"),
    ("LOCATION", "LOC"),
    ("FAMILY", "FAM"),
    ("OCCUPATION", "OCC"),
    ("DECISION", "DEC"),
    ("EVENT", "EVT"),
    ("TOOL", "TOOL"),
    ("FACT", "FACT"),
    ("OPINION", "OPN"),
)

# Longest first; phrases of one length keep the order of the real table.
_PHRASES = (
    ("Full-stack developer", "FSDEV"),
    ("User voice message ", "VM "),
    ("AI Systems Engineer", "AIENG"),
    ("Software Developer", "SDEV"),
    ("User asked for ", "ASK "),
    ("User requested ", "REQ "),
    ("User dislikes ", "DISLIKE "),
    ("User email is ", "@"),
    ("User prefers ", "PREF "),
    ("transcription", "transc"),
    ("User stack: ", "STACK|"),
    ("User asked ", "ASK "),
    ("User wants ", "WANT "),
    ("User likes ", "LIKE "),
    ("User built ", "BUILT "),
    ("Married to ", "MARRIED→"),
    ("self-hosted", "selfhost"),
    ("translation", "transl"),
    ("Location: ", "LOC:"),
    ("automation", "auto"),
    ("User has ", "HAS "),
    ("real-time", "RT"),
    ("Real-time", "RT"),
    ("bilingual", "bi"),
    ("Bilingual", "bi"),
    ("User is ", "IS "),
    ("GitHub: ", "GH:"),
    ("Email: ", "@"),
    ("Phone: ", "PH:"),
)

_CONNECTIVES = (
    (" - ", " | "),
    (" -- ", " | "),
    (" | ", " | "),
    (", ", " | "),
    (" and ", "+"),
    (" or ", "/"),
    (" for ", "→"),
    (" to ", "→"),
    (" with ", " w/ "),
    (" over ", ">"),
    (" instead of ", "!>"),
    (" because of ", "∵"),
    (" due to ", "∵"),
    (" using ", "→"),
    (" built ", "→"),
    (" in ", ":"),
    (" at ", "@"),
    (" on ", "@"),
    (" from ", "<-"),
)

_ENDINGS = (("working correctly", "OK"), ("working", "OK"), ("complete", "DONE"))

_OPENING = re.compile(rf"\([{js.WHITESPACE}]+")
_WORDS_OF_A_CODE = 3


def encode(text: str) -> str:
    """Return the short form of a text; a text that already looks like a code is left as it is."""
    if "|" in text and len(js.split_spaces(text)) <= _WORDS_OF_A_CODE:
        return text
    text = _category(js.trim(text))
    for table in (_PHRASES, _CONNECTIVES):
        for long, short in table:
            text = text.replace(long, short)
    text = _OPENING.sub("(", text).replace(" )", ")")
    for long, short in _ENDINGS:
        text = text.replace(long, short)
    return js.trim(text)


def _category(text: str) -> str:
    for name, code in _CATEGORIES:
        if text.startswith(f"{name}: "):
            return f"{code}|{text[len(name) + 2 :]}"
    return text
