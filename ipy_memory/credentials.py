"""Texts that look as if they held a credential, and what happens before such a text is sent to a server.

This net is wider than the agent's own (:mod:`ipy_memory.redact`), since it only warns, or asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ipy_memory.errors import CredentialError, MagicError
from ipy_memory.redact import MARK, redact, redact_counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.model import RetainItem

Outgoing = Callable[[str, str], None]
"""Called with a text and the place it is about to be sent to; raises to keep it here."""

_NAME = (
    r"(?:pass(?:word|wd|phrase|code|wort)|[_-]pass|pwd|kennwort|mot de passe|contrase(?:\u00f1|n)a|senha"
    r"|wachtwoord|l\u00f6senord|passord|adgangskode|salasana|has\u0142o|\u015fifre"
    r"|\u043f\u0430\u0440\u043e\u043b\u044c|\u5bc6[\u7801\u78bc]|\u30d1\u30b9\u30ef\u30fc\u30c9|\ube44\ubc00\ubc88\ud638|secret|token|credential"
    r"|(?:api|access|private|account|secret|signing|encryption|master)[ _-]?key)s?"
    r"(?:[_-][a-z]{1,12}){0,3}"
)
# Every repetition before the end of a shape has an upper bound, so that the time follows the length of the text.
_SAYS = r"[\"']?(?:\s{1,3}is)?\s{0,3}[:=\uff1a]\s{0,3}(?P<quote>[\"'])?"
_TO_THE_QUOTE = r"(?(quote)(?:(?!(?P=quote))[^\n])*|\S*)"
_SERVICE_KEYS = (
    r"glpat-|gldt-|glsa_|hf_|sk-|sk_live_|rk_live_|sk_test_|rk_test_|whsec_|shp(?:at|ss|ca|pa)_|do[opr]_v1_|pypi-|npm_"
    r"|ya29\.|SG\.|xox[a-z]-|xapp-|github_pat_|gh[pousr]_|AKIA|ASIA|AIza|dckr_pat_|AGE-SECRET-KEY-1|ATATT3|lin_api_"
    r"|hv[sb]\.|sntrys_|nvapi-|r8_|pplx-|xai-|gsk_|figd_|ntn_|sbp_|tskey-|PMAK-|sq0[a-z]{3}-"
    r"|rubygems_|dapi(?=[0-9a-f]{32})|key-(?=[0-9a-f]{32})|EAA(?=[a-z0-9]{40})|GOCSPX-|NRAK-|LTAI(?=[a-z0-9]{16})"
    r"|gl(?:rt|oas|cbt|ptt|ft|imt|soat|agent)-|sntryu_|nfp_|dp\.(?:pt|st|ct)\.|pul-(?=[0-9a-f]{32})|ph[cx]_|rdme_"
    r"|CFPAT-|shippo_(?:live|test)_|EZ[AT]K(?=[a-z0-9]{40})|ops_eyJ|1//0(?=[a-z0-9_-]{30})|secret_(?=[a-z0-9]{40})"
    r"|[MNO](?=[a-z0-9_-]{23,27}\.[a-z0-9_-]{6}\.[a-z0-9_-]{27})"
    r"|SK(?=[0-9a-f]{32}(?![a-z0-9]))|[0-9]{8,10}:AA(?=[a-z0-9_-]{30})"
)
_COMMANDS = (
    rf"(?<![\w-])(?:--{_NAME}\s{{1,3}}(?!-)|sshpass\s{{1,3}}-p\s{{0,3}}"
    r"|mysql[a-z]{0,8}\s(?:[^\n]{0,80}\s)?-p(?=\S)"
    r"|(?:curl|wget)\s(?:[^\n]{0,200}\s)?(?:-u|--user)\s{0,3}[^\s:]{1,64}:"
    r"|login\s{1,3}\S{1,64}\s{1,3}password\s{1,3})[\"']?"
)
_SHAPES = (
    ("a password, token or key with its name", rf"{_NAME}{_SAYS}", r"[^\s\"',;]{6}", _TO_THE_QUOTE),
    (  # without a sign between them, only what has a digit in it is taken for the value
        "a password, token or key with its name",
        rf"{_NAME}(?:\s{{1,3}}is)?\s{{1,3}}[\"']?",
        r"(?=[a-z!@#$%^&*+/=_]{0,64}[0-9])[a-z0-9!@#$%^&*+/=_]{8}",
        r"[^\s\"',;]*",
    ),
    ("a password on a command line", _COMMANDS, r"[^\s\"']{4}", r"[^\s\"']*"),
    ("a bearer token", r"(?<![a-z])bearer\s{1,3}", r"[a-z0-9._~+/=-]{16}", r"\S*"),
    (
        "a user and password in a header",
        r"authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|token|digest|api-?key)\s{1,3}",
        r"[a-z0-9+/=_.-]{8}",
        r"[a-z0-9+/=_.-]*",
    ),
    ("a cookie", r"(?<![a-z])cookies?\s{0,3}:\s{0,3}[^\s=]{1,64}=", r"[^\s;]{16}", r"[^\n]*"),
    ("a URL with a password", r"://", r"[^\s/:@]{0,256}:[^\s/@]{1,256}(?=@)", ""),
    (
        "the address of a webhook",
        r"hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/",
        r"[a-z0-9]{8}",
        r"[a-z0-9/_-]*",
    ),
    (
        "a private key",
        "",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        r"(?:(?!-----END)[\s\S])*(?:-----END[^\n-]*-----)?",
    ),
    ("a key of a known service", r"(?<![a-z0-9])", rf"(?:{_SERVICE_KEYS})[a-z0-9_.-]{{12}}", r"[a-z0-9_.-]*"),
    ("a JSON web token", r"(?<![a-z0-9_-])", r"eyJ[a-z0-9_-]{8,4096}\.eyJ[a-z0-9_-]{8}", r"[a-z0-9_.-]*"),
)
"""Each with what stands in front of it, what it is known by, and the rest of it."""

_FLAGS = re.IGNORECASE | re.ASCII
_PATTERNS = tuple((name, re.compile(f"(?:{front}){known}", _FLAGS)) for name, front, known, _ in _SHAPES)
_WHOLE = tuple(re.compile(f"(?P<front>{front}){known}{rest}", _FLAGS) for _, front, known, rest in _SHAPES)
_OTHER = "a text shaped like a key"


def shapes(text: str) -> tuple[str, ...]:
    """Return in words which kinds of credential a text seems to hold."""
    found = tuple(dict.fromkeys(name for name, pattern in _PATTERNS if pattern.search(text)))
    return found or ((_OTHER,) if redact_counted(text)[1] else ())


def without_credentials(text: str) -> tuple[str, int]:
    """Return a text with each part that looks like a credential replaced by a mark, and how many there were."""
    count = 0
    for pattern in _WHOLE:
        # A mark is no credential of what is named in front of it, as in "password: [REDACTED]".
        parts = [pattern.subn(rf"\g<front>{MARK}", part) for part in text.split(MARK)]
        text = MARK.join(part for part, _ in parts)
        count += sum(found for _, found in parts)
    text, found = redact_counted(text)
    return text, count + found


PEM, JWT, SERVICE, URL = "a private key", "a JSON web token", "a key of a known service", "a URL with a password"
NAMED, COMMAND, BEARER = _SHAPES[0][0], "a password on a command line", "a bearer token"


@dataclass(frozen=True, slots=True)
class Found:
    """One part of a text that looks like a credential: its kind, what stands in front of it, and its value."""

    kind: str
    front: str
    value: str
    start: int
    end: int
    quoted: bool = False


def found_in(text: str) -> list[Found]:
    """Return every part of a text that looks like a credential; parts may overlap."""
    found = []
    for (kind, *_), pattern in zip(_SHAPES, _WHOLE, strict=True):
        for match in pattern.finditer(text):
            start = match.end("front")
            quoted = "quote" in pattern.groupindex and match["quote"] is not None
            found.append(Found(kind, match["front"], text[start : match.end()], start, match.end(), quoted))
    return found


class Guard:
    """Watches what a session sends: warns before a text with a credential leaves, or keeps it here.

    Parameters
    ----------
    tell
        Shows a warning, before anything is sent.

    Attributes
    ----------
    refuse : bool
        Whether such a text is not sent at all.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self.refuse = False
        self._tell = tell
        self._told: set[tuple[int, str]] = set()

    def __call__(self, text: str, place: str) -> None:
        """Look at a text that is about to be sent to a place; each text is told about once.

        Raises
        ------
        CredentialError
            The text seems to hold a credential, and such a text is refused.
        """
        found = shapes(text)
        if not found:
            return
        kinds = " and ".join(found)
        if self.refuse:
            raise CredentialError(
                f"The text was not sent to {place}: it seems to hold {kinds}.",
                hint="take it out, or allow it: %config MemoryMagics.refuse_credentials = False",
            )
        if (key := (hash(text), place)) not in self._told:
            self._told.add(key)
            self._tell(f"The text that goes to {place} seems to hold {kinds}; it is sent as it is.")


def unguarded(_text: str, _place: str) -> None:
    """Let every text go."""


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
