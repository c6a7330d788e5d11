"""Memories that are of no use: echoes of what was recalled, passed dates, fragments, leftovers, and huge texts."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING

from ipy_memory.audit.cues import CONJUNCTIONS, PREPOSITIONS, PRONOUNS
from ipy_memory.audit.findings import DERIVED, finding
from ipy_memory.jscompat.dates import parse_ms
from ipy_memory.ranking.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipy_memory.audit.findings import Finding, Rows, Severity, Tick
    from ipy_memory.model import Memory

OVERSIZED, HUGE = 10_000, 100_000
"""Characters of a memory of which a recall shows only a small part."""

_DAY_MS = 86_400_000
_SOON = 14
"""Days after which what was to happen tomorrow has happened."""

_FEW = 12
"""Words of a fragment; what is longer says something even where it breaks off."""

_BLOCK = re.compile(
    r"^\s*</?(?:memories|mental_models|memory_context|recalled_memories|relevant_memories|system-reminder)>"
    r"|^Found \d+ relevant memor(?:y|ies) \(as of "
    r"|^_\(\d+ memories retrieved\)_|^## (?:Top Facts|Supporting Context|Recent Signals)$"
    r"|^\d+ memor(?:y|ies) (?:stored|queued)\.?$",
    re.MULTILINE,
)
_BULLET = re.compile(
    r"^- .+ (?:\(id: [\w:.-]+\)|\(id unavailable\))(?: \[[^\]]*\])?(?: \(\d{4}-\d\d-\d\d\))?", re.MULTILINE
)
_TOOL = re.compile(
    r"</?(?:tool_result|tool_use|function_results?|function_calls?|tool_call|tool_response|stdout|stderr)\b[^>]*>"
    r"|</?bash-std(?:out|err)>"
    r'|"(?:tool_call_id|tool_use_id|call_id)"\s*:|"type"\s*:\s*"(?:tool_result|tool_use|function_call_output)"'
    r"|^Traceback \(most recent call last\):|^\s+at \S+ \(\S+:\d+:\d+\)$|^(?:Command )?[Ee]xit(?:ed with)? code:? \d+"
    r"|^diff --git a/|^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|^(?:total \d+\n)?[d-](?:[r-][w-][xst-]){3}[ .+@]"
    r"|^(?:\[[a-z_]*tool[a-z_]*(?: (?:result|output|call))?\]|Tool (?:result|output|call)(?: \(\w+\))?:)",
    re.MULTILINE,
)
_UNTIL = re.compile(
    r"\b(?:until|till|by|before|expires?(?: on)?|valid until|ends? on|due(?: on)?|deadline(?: is)?|bis(?: zum)?"
    r"|gültig bis|jusqu'au"
    r"|hasta(?: el)?|fino al|até|tot|tills|до)\s+(?P<date>\d{4}-\d\d-\d\d)\b",
    re.IGNORECASE,
)
_SHORTLY = re.compile(
    r"\b(?:tomorrow|tonight|this (?:morning|afternoon|evening|week)|next week|later today|right now|at the moment"
    r"|in a few (?:minutes|hours)|morgen früh|heute (?:abend|nachmittag)|diese woche|nächste woche"
    r"|gleich nachher|demain"
    r"|ce soir|cette semaine|la semaine prochaine|esta (?:noche|tarde|semana)|la semana que viene|domani|stasera"
    r"|questa settimana|amanhã|hoje à noite|esta semana|vanavond|deze week|volgende week|i kväll|nästa vecka)\b"
    r"|明天|今晚|下周|本周|明日|今夜|来週|завтра",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"(?:ok(?:ay)?|yes|no|yep|nope|sure|thanks?|thank you|done|great|good|nice|perfect|got it|will do"
    r"|sounds good|understood"
    r"|hi|hello|hey|bye|lgtm|test(?:ing)?|foo|asdf|todo|n/?a|none|null|undefined|\[object Object\]|ja|nein"
    r"|danke|gut|fertig"
    r"|oui|non|merci|d'accord|sí|gracias|vale|grazie|va bene|sim|não|obrigad[oa]|dank je|tack)"
    r"(?:[ ,.!]+(?:ok(?:ay)?|thanks?|you|done|great|so much|danke|merci))?",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(r"fact \w+(?: |\Z)")
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_VALUE = re.compile(r"\d|[a-z][A-Z]|\w[_/.@:]\w|`")


def echoes(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield memories that are what an agent was shown: memory blocks, results of tools, memories listed again."""
    known: dict[str, str] = {}
    for row in rows.live:
        known.setdefault(_plain(row.content), row.id)
    for row in rows.live:
        tick()
        text = row.content
        if _BLOCK.search(text) or _BULLET.search(text):
            yield finding(
                "echoes", row, "a memory block or a recall stored again", severity="medium", action="invalidate"
            )
        elif _TOOL.search(text):
            yield finding("echoes", row, "output of a tool", severity="low", action="invalidate")
        elif not row.about and "\n" in text and (again := _repeated(row, known)):
            evidence = f"{len(again)} lines are memories of their own"
            yield finding("echoes", row, evidence, severity="low", action="invalidate", named=again)


def _repeated(row: Memory, known: dict[str, str]) -> list[str]:
    lines = [_plain(re.sub(r"^\s*(?:[-*\u2022]|\d+[.)])\s+", "", line)) for line in row.content.splitlines()]
    lines = [line for line in lines if line]
    found = [known[line] for line in lines if len(line) >= 12 and line in known and known[line] != row.id]
    return list(dict.fromkeys(found)) if len(found) >= 2 and len(found) * 2 >= len(lines) else []


def _plain(text: str) -> str:
    return re.sub(r"\s*(?:\(\d{4}-\d\d-\d\d\)|\[[\w-]+\])\s*\Z", "", " ".join(text.split())).rstrip(".").casefold()


def stale(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield memories whose time has passed: a date until which they hold, or a tomorrow of long ago."""
    for row in rows.live:
        tick()
        ends = [parse_ms(match["date"], UTC) for match in _UNTIL.finditer(row.content)]
        passed = [end for end in ends if end is not None]
        if passed and max(passed) + _DAY_MS < rows.now_ms:
            yield finding("stale", row, "the date that it names has passed", severity="low", action="invalidate")
            continue
        told = parse_ms(row.timestamp, UTC) if row.timestamp else None
        if told is None or rows.now_ms - told < _SOON * _DAY_MS or row.about:
            continue
        if match := _SHORTLY.search(row.content):
            days = int((rows.now_ms - told) // _DAY_MS)
            yield finding("stale", row, f'"{match[0]}", said {days} days ago', severity="low", action="invalidate")


def junk(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield facts without a subject, fragments of sentences, and answers that say nothing on their own."""
    for row in rows.every:
        tick()
        if row.state not in {None, "live"} or row.store in DERIVED - {"fact"}:
            continue
        if why := _junk(row):
            yield finding("junk", row, why, severity="low", action="forget" if row.store == "fact" else "invalidate")


def _junk(row: Memory) -> str:
    text = row.content.strip()
    words = words_of(text)
    if not any(map(str.isalnum, text)):
        return "no words"
    if row.store == "fact":
        # What has no subject of its own is stored as a sentence under the subject "fact".
        first = (words_of(_NO_SUBJECT.sub("", text)) or [""])[0].lower()
        missing = row.content[:1].isspace() or not first or first in PRONOUNS
        return "a fact without a subject" if missing else ""
    if _ANSWER.fullmatch(text.rstrip(" .!?")):
        return "an answer that says nothing on its own"
    if _UNSPACED.search(text):
        return "a fragment" if len(text) < 3 else ""
    if len(words) < 2 and not _VALUE.search(text):
        return "a single word"
    last = words[-1].lower()
    if len(words) <= _FEW and (text[-1] in ",;" or (text[-1].isalnum() and last in _OPEN)):
        return "a fragment: it breaks off"
    if len(words) <= 8 and text[0].islower() and words[0].lower() in _OPEN and not _VALUE.search(text):
        return "a fragment: its beginning is missing"
    return ""


_BOTH = """
    in on by off over under before after since instead so if no na a e o y an auf aus zu mit vor nach bei ab um per con
    da al su tra over voor met op uit av i si
"""
_OPEN = (CONJUNCTIONS | PREPOSITIONS | {"the", "der", "die", "das", "le", "la", "el", "il"}) - set(_BOTH.split())
"""Words that nothing ends with, and that nothing begins with but a part of a sentence."""


def orphans(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield what was made from memories that are gone, and memories whose replacement is gone."""
    for row in rows.every:
        tick()
        if row.store in DERIVED and row.about and not rows.ids.intersection(row.about):
            evidence = f"the memory of this {row.store} is gone"
            yield finding("orphans", row, evidence, severity="low", action="forget")
        elif row.superseded_by and row.store not in DERIVED and row.superseded_by not in rows.ids:
            evidence = "the memory that replaced it is gone"
            named = (row.superseded_by,)
            yield finding("orphans", row, evidence, severity="low", action="review", named=named)


def oversized(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield memories so large that a recall shows only a small part of them."""
    for row in rows.live:
        tick()
        if (size := len(row.content)) > OVERSIZED:
            severity: Severity = "medium" if size > HUGE else "low"
            yield finding("oversized", row, f"{size} characters", severity=severity, action="review")
