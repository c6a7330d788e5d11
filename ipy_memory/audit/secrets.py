"""Memories that hold a credential: the shapes of :mod:`ipy_memory.credentials`, each value weighed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ipy_memory.audit.findings import finding
from ipy_memory.credentials import BEARER, COMMAND, JWT, NAMED, PEM, SERVICE, URL, Found, found_in
from ipy_memory.redact import MARK, redact_counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipy_memory.audit.findings import Finding, Rows, Severity, Tick

_SHOWN = 4
"""So many characters of a secret are shown at most."""

_HIDDEN = frozenset({PEM, URL, "the address of a webhook"})
"""Kinds of which nothing is shown."""

_ORDER = (PEM, JWT, SERVICE, URL)
"""The most telling kinds first; of parts that overlap the first one is named."""

# A text without any of these has no credential: most texts need no closer look.
_WORTH_A_LOOK = re.compile(
    r"pass|pwd|kennwort|contrase|senha|[^\x00-\x7f]|wachtwoord|salasana|adgangskode|secret|token|credential|key"
    r"|bearer|auth|cookie|://|hooks|webhook|-----|login|curl|wget|mysql|[a-z0-9_+/=-]{12}",
    re.IGNORECASE,
)
_DOCUMENTED = re.compile(
    r"example|sample|dummy|placeholder|fake|changeme|change[_-]me|hunter2|foobar|test|demo|xxxx|your[_-]|1234567"
    r"|abcdef|passw[o0]rd|s3cr3t|letmein|deadbeef|not[_-]?a?[_-]?real|^(?:user|admin|root|postgres)?:?(?:pass|secret)\Z",
    re.IGNORECASE,
)
_STANDS_FOR_IT = re.compile(
    r"[<\[{(].*|\$[\w{(].*|%\w+%|\*+|\.{2,}.*|\u2026.*|[xX\u2022_#-]+|\W+|(?:os|process|config|settings|env|self|this|args|secrets|"
    r"vault|import)\.\w.*|[a-z_]\w*(?:\.\w+)*\(.*|(?:none|null|nil|true|false|undefined|redacted|str|string|bytes|int)"
    r"[.,;:)\]]*|.*" + re.escape(MARK) + r".*",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_THING = re.compile(
    r"(?:name|type|ur[li]|uri|path|file|field|limit|count|ttl|expiry|expires?|length|policy|env|var|store|manager|budget"
    r"|size|window|usage|hash|rotation|prefix|header|version|provider|format|column|index|ref|arn|used)s?[\"']?"
    r"(?:\s{1,3}is)?\s{0,3}[:=\uff1a]?\s{0,3}[\"']?\Z",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"(?:[a-z]+(?:ed|ing|able|ible|en)|missing|optional|none|unknown|invalid|bearer|basic|absent|present|needed|valid"
    r"|empty|stale|secret|default|manual|always|should|before|please|inside|through|unless|within|either|another)\Z"
)
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w.-]+(?:/[\w.@-]*)*\Z|[\w.-]+(?:/[\w.-]+)+\Z|[A-Za-z]:\\|https?://")
_CODE_NAME = re.compile(r"(?:[A-Z]?[a-z]+)(?:[A-Z][a-z]+)+\Z|[A-Z]+(?:_[A-Z]+)+\Z|[a-z]+(?:[_.][a-z]+)+\Z")
_KEBAB = re.compile(r"[a-z]+(?:-[a-z]+)+\Z")
_OF_PASSWORD = re.compile(r"pass|pwd|wort|contrase|senha|ord\b|salasana|adgangskode|[^\x00-\x7f]", re.IGNORECASE)
_RUN = re.compile(r"[A-Za-z0-9]+")
_WORDY = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]{2,})*\Z|[A-Z]+\Z")
_CONSONANTS = re.compile(r"[b-df-hj-np-tv-xz]{5}", re.IGNORECASE)
_TRAILING = ".,;:!?)]}'\"`"


def secrets(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield a finding for each row that holds a credential."""
    for row in rows.every:
        tick()
        held = held_in(row.content)
        if not held:
            continue
        severity: Severity = "high" if any(not documented(one) for one in held) else "low"
        evidence = "; ".join(dict.fromkeys(map(_shown, held)))
        yield finding("secrets", row, evidence, severity=severity, action="redact")


def held_in(text: str) -> list[Found]:
    """Return the credentials of a text, no two of which overlap, in the order of the text."""
    if not _WORTH_A_LOOK.search(text):
        return []
    kept: list[Found] = []
    for one in sorted(found_in(text), key=_rank):
        if _is_value(one) and not any(one.start < other.end and other.start < one.end for other in kept):
            kept.append(one)
    if not kept and _shaped_like_a_key(text):
        kept.append(Found("a text shaped like a key", "", "", 0, 0))
    return sorted(kept, key=lambda one: one.start)


def documented(one: Found) -> bool:
    """Return whether a value looks as if it came from documentation or a test."""
    return bool(_DOCUMENTED.search(one.value)) or (one.kind != PEM and len(set(one.value)) <= 3)


def _rank(one: Found) -> tuple[int, int]:
    return (_ORDER.index(one.kind) if one.kind in _ORDER else len(_ORDER), one.start)


def _shown(one: Found) -> str:
    if one.kind in _HIDDEN or not one.value:
        return one.kind
    return f"{one.kind} ({one.value[: min(_SHOWN, len(one.value) // 3)]}…)"


def _is_value(one: Found) -> bool:
    value = one.value.strip().rstrip(_TRAILING)
    if one.kind in {PEM, JWT}:
        return True
    if one.kind == URL:
        password = value.partition(":")[2]
        return bool(password) and not _STANDS_FOR_IT.fullmatch(password)
    if not value or _STANDS_FOR_IT.fullmatch(value):
        return False
    if one.kind == SERVICE:
        return looks_random(value)
    if one.kind in {NAMED, COMMAND}:
        return _is_named_value(one, value)
    if one.kind == BEARER:
        return looks_random(value) or len(value) >= 24
    return looks_random(value) or any(c.isdigit() for c in value) or one.kind not in _HIDDEN


def _is_named_value(one: Found, value: str) -> bool:
    """Return whether what follows the name of a credential is one, and not a word about it."""
    front = one.front
    if _OTHER_THING.search(front) or (_PATH.match(value) and not _mixed(value, 24)):
        return False
    of_password = bool(_OF_PASSWORD.search(front))
    assigned = front.rstrip(" \"'").endswith(("=", ":", "\uff1a"))
    if value.isdigit():
        return of_password and assigned and len(value) >= 4
    if not assigned and one.kind == NAMED and not of_password:
        return sum(c.isdigit() for c in value) >= 2 and any(c.isalpha() for c in value)
    if any(c.isdigit() for c in value) or (one.quoted and " " not in value):
        return not re.fullmatch(r"v?\d+(?:\.\d+)+|\d+\s?(?:ms|s|min|h|d|k|kb|mb|days?)|[\d,.:-]+", value, re.IGNORECASE)
    if one.kind == COMMAND or (
        value.isalpha() and value.isascii() and (of_password or len(value) >= 8) and _jumbled(value)
    ):
        return True
    if _KEBAB.match(value):
        return of_password and value.count("-") >= 2
    if _CODE_NAME.match(value) and not looks_random(value):
        return False
    if any(not c.isalnum() for c in value):
        return of_password or looks_random(value)
    return front.rstrip(" \"'").endswith("=") and of_password and not _STATE.match(value)


def _jumbled(value: str) -> bool:
    """Return whether letters are no word: their case changes within, or there are too many consonants."""
    return not _WORDY.match(value) or bool(_CONSONANTS.search(value))


def _mixed(value: str, least: int) -> bool:
    return len(value) >= least and any(map(str.isdigit, value)) and any(map(str.isupper, value))


def looks_random(value: str) -> bool:
    """Return whether a value has a part that no word or name has: letters and digits mixed, or a long jumble."""
    for run in _RUN.findall(value):
        digits = any(map(str.isdigit, run))
        letters = any(map(str.isalpha, run))
        if len(run) >= 6 and digits and letters and not re.fullmatch(r"[A-Za-z]+\d{1,4}", run):
            return True
        if (len(run) >= 16 and letters) or (len(run) >= 8 and letters and not digits and not _WORDY.match(run)):
            return True
    return False


def _shaped_like_a_key(text: str) -> bool:
    """Return whether the agent's own net would take out a part that is no word, path or commit."""
    if not redact_counted(text)[1]:
        return False
    return any(_in_the_net(run) for run in re.findall(r"(?<![\w./-])[A-Za-z0-9_-]{15,}(?![\w/])", text))


def _in_the_net(run: str) -> bool:
    last = re.split(r"[_-]", run)[-1]
    return bool(redact_counted(run)[1]) and len(last) >= 12 and not last.isdigit() and looks_random(last)
