"""What a sentence states of a thing: the one value of a relation, a denial, or a value that took another's place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.audit import cues
from ipy_memory.audit.words import CUT, NOT, Content, Token, stem_of, tokens_of
from ipy_memory.ranking.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LONGEST = 40
"""A sentence of more words states more than one thing."""
_LONGEST_VALUE = 4
_SENTENCES = 12
_SENTENCE = re.compile(r"(?<=[.!;\u3002\uff01])(?:\s+|(?<=[\u3002\uff01]))|\n+")
_STAMP = re.compile(
    r"\s*(?:[-*\u2022]\s+)?"
    r"(?:[\[(]?\d{4}-\d\d-\d\d(?:[T ][\d:.Z+-]+)?[\])]?\s*[:\u2013-]?\s+(?=\S)|\[[^\]]{0,40}\]\s*)?"
)
_SINCE = re.compile(
    r"[,(]?\s*(?:as of|since|seit|ab|depuis|desde|dal|sinds|sedan)\s+\d{4}-\d\d(?:-\d\d)?\)?(?=[.!]?\s*\Z)",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d{4}-\d\d(?:-\d\d)?(?:t[\d:.]+z?)?\Z|\d{1,2}[./]\d{1,2}[./]\d{2,4}\Z|\d{4}/\d\d/\d\d\Z", re.IGNORECASE
)
_NUMBER = re.compile(r"=-?[$\u20ac\u00a3\u00a5v]?\d+(?:[.,:]\d+)*[%\u00b0a-z]{0,4}\Z")
_MANNER = re.compile(
    r"(?:\w+(?:ed|ing|able|ible|ful|less|ous|ly|ive)|done|ready|great|good|fine|here|there|happy|down|up)\Z"
)
_CJK = re.compile(
    r"(?P<front>[^\uff0c\u3002,.;]{2,40}?)(?:\u73b0\u5728|\u76ee\u524d|\u5df2\u7ecf?|\u4eca\u306f)?"
    r"(?P<cue>\u6539\u4e3a|\u8bbe\u4e3a|\u8bbe\u7f6e\u4e3a|\u8a2d\u70ba|\u662f|\u4e3a|\u70ba|\u306f|\uff1a)\s*(?P<value>[^\uff0c\u3002,;\s]{1,24}?)\s*"
    r"(?P<end>\u3067\u3059|\u3060|\u3067\u3042\u308b)?[\u3002.!\uff01]?\Z"
)


@dataclass(frozen=True, slots=True)
class Stated:
    """One thing that a sentence states: two of one frame and different values may contradict each other."""

    frame: tuple[str, ...]
    value: tuple[str, ...]
    shown: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value that another one took the place of, and what else the sentence is about."""

    former: tuple[str, ...]
    present: tuple[str, ...]
    about: frozenset[str]
    shown: str
    words: frozenset[str]


def sentences_of(text: str) -> list[str]:
    """Return the first sentences of a text, without the time in front of them; questions are left out."""
    found = []
    for part in _SENTENCE.split(text[:4_000])[:_SENTENCES]:
        plain = _SINCE.sub("", part[match.end() :] if (match := _STAMP.match(part)) else part).strip()
        if plain and not plain.endswith(("?", "\uff1f")):
            found.append(plain)
    return found


def short_tokens(sentence: str) -> list[Token]:
    """Return the words of a sentence that is short enough to state one thing; none of a longer one."""
    tokens = tokens_of(sentence[:600])
    return tokens if 2 <= len(tokens) <= _LONGEST and len(sentence) <= 600 else []


def denied(tokens: Sequence[Token], language: str) -> Stated | None:
    """Return a sentence as a frame without its negations and opposites, and whether it affirms or denies."""
    turned = False
    kept: list[Token] = []
    for token in tokens:
        pole = _POLES.get(token.form)
        if pole is None:
            kept.append(token)
        else:
            turned ^= pole[1]
            kept.append(Token(pole[0], token.written, exact=True))
    content = Content(kept, language)
    if len(content.stems) < 2:
        return None
    denies = content.negated ^ turned
    frame = (NOT, *sorted(content.stems), *(f"{word}>{stem}" for word, stem in sorted(content.phrases)))
    return Stated(frame, ("no" if denies else "yes",), "the opposite")


_POLES = {word: (f"<{pair[0]}>", bool(place)) for pair in cues.OPPOSITES for place, word in enumerate(pair)}


def single_values(sentence: str, tokens: Sequence[Token], language: str) -> Iterator[Stated]:
    """Yield each single value that a sentence gives to a thing."""
    if (match := _CJK.match(sentence)) and not sentence.isascii():
        front = re.sub(r"[\s\u7684\u306e]", "", match["front"])
        if not any(char.isdigit() for char in front[-1:]) and len(front) >= 2:
            yield Stated(("cjk", front), (match["value"].lower(),), match["value"])
        return
    for start, end, first in _slots(tokens):
        value = tokens[start:end]
        stated = _stated(tokens, start, end, value, first, language)
        if stated is not None:
            yield stated


def _slots(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield where values may be, and what tells so: ``is``, ``phrase``, ``noun`` or ``verb``."""
    forms = [token.form for token in tokens]
    seen: set[tuple[int, int]] = set()
    for at, token in enumerate(tokens):
        form = token.form
        found: list[tuple[int, int, str]] = []
        phrase = next((p for p in _PHRASES.get(form, ()) if tuple(forms[at : at + len(p)]) == p), None)
        if phrase is not None:
            start = at + len(phrase)
            found.append((start, _end(tokens, start), "phrase"))
        elif form in cues.COPULAS or (form == CUT and token.written in {":", "=", "\u2014"}):
            start = _after_fillers(forms, at + 1)
            if not any(
                tuple(forms[start : start + len(p)]) == p for p in _PHRASES.get("".join(forms[start : start + 1]), ())
            ):
                found.append((start, _end(tokens, start), "sign" if form == CUT else "is"))
            begin = _begin(forms, at)
            if (
                form in cues.COPULAS
                and at + 1 < len(forms)
                and forms[at + 1] not in cues.PREPOSITIONS
                and any(one in cues.NAMING for one in forms[at + 1 : at + 6])
            ):
                found.append((begin, at, "noun"))
        elif (
            form in cues.NAMING
            and at + 1 < len(tokens)
            and tokens[at + 1].exact
            and not cues.TELLING_WHEN & set(forms[max(0, at - 2) : at])
        ):
            found.append((at + 1, at + 2, "noun"))
        elif _counts(tokens, at):
            found.append((at, at + 1, "noun"))
        elif form in cues.BEHIND_A_VALUE:
            found.append((_begin(forms, at), at, "verb"))
        for start, end, how in found:
            if start < end and (start, end) not in seen:
                seen.add((start, end))
                yield start, end, how


def _counts(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a number says how long or how often, as in "after 15 minutes", or which release: "on Node 20"."""
    if not at or not _NUMBER.match(f"={tokens[at].form}") or not tokens[at].exact:
        return False
    if tokens[at - 1].form in cues.BEFORE_A_TIME and at + 1 < len(tokens) and tokens[at + 1].form in cues.UNITS:
        return True
    last = at + 1 == len(tokens) or tokens[at + 1].form == CUT or tokens[at + 1].form in cues.PREPOSITIONS
    return last and at > 1 and tokens[at - 1].name and tokens[at - 2].form in cues.BEFORE_A_RELEASE


def _after_fillers(forms: Sequence[str], at: int) -> int:
    while at < len(forms) and (forms[at] in cues.FILLERS or forms[at] in cues.ARTICLES - cues.INDEFINITE):
        at += 1
    return at


def _begin(forms: Sequence[str], end: int) -> int:
    at = end
    while at > 0 and forms[at - 1] != CUT and forms[at - 1] not in cues.CONJUNCTIONS:
        at -= 1
    return at


def _end(tokens: Sequence[Token], start: int) -> int:
    at = start
    while at < len(tokens):
        form = tokens[at].form
        if form == CUT or form in cues.CONJUNCTIONS or (form in cues.PREPOSITIONS and at > start):
            break
        at += 1
    return at


def _stated(
    tokens: Sequence[Token], start: int, end: int, value: Sequence[Token], how: str, language: str
) -> Stated | None:
    if how == "is" and len(value) > 1 and value[-1].form in cues.NAMING:
        # As in "for billing Dana is responsible", where some languages end with what names the value.
        end, value = end - 1, value[:-1]
    forms = [token.form for token in value]
    stems = tuple(Content(value, language).stems)
    if not stems or len(stems) > _LONGEST_VALUE or any(form in cues.NEGATIONS for form in forms):
        return None
    if cues.NAMING & set(forms) if how == "is" else forms[0] in cues.PREPOSITIONS:
        return None
    rest = [*tokens[:start], *tokens[end:]]
    words = {token.form for token in rest}
    content = Content([token for token in rest if token.form not in cues.AROUND_A_VALUE], language)
    phrases = [f"{word}>{stem}" for word, stem in content.phrases if word not in cues.EMPTY_WORDS]
    about = sorted(content.stems)
    named = bool(words & cues.NAMING)
    if not about or (content.negated and how != "verb") or words & cues.MANY or _lists_more(tokens, end):
        return None
    if any(_DATE.match(token.form) for token in value) and not words & cues.DATING:
        return None
    if how == "is" and not named and not _one_of_a_kind(tokens, start, value, stems, about):
        return None
    if how == "sign" and (len(about) < 2 or not cues.NAMING & {token.form for token in tokens[: start - 1]}):
        return None
    if how == "noun" and any(_DATE.match(token.form) for token in rest):
        return None
    if how in {"noun", "verb"} and (len(stems) > 3 or len(about) < 1 or forms[0] in cues.PRONOUNS):
        return None
    if how == "phrase" and all(form in cues.PRONOUNS | cues.EMPTY_VERBS for form in words):
        return None
    # One phrase may stand in several places of a sentence; with more of them it matters which word belongs to which.
    frame = (*about, *sorted(phrases)) if len(phrases) > 1 else tuple(about)
    return Stated(frame, tuple(sorted(stems)), " ".join(token.written for token in value))


def _lists_more(tokens: Sequence[Token], end: int) -> bool:
    """Return whether a value is followed by another one, as in "a, b and c"."""
    return end + 1 < len(tokens) and tokens[end].form in {
        "and",
        "und",
        "et",
        "y",
        "e",
        "en",
        "och",
        "\u0438",
        "or",
        "oder",
    }


def _one_of_a_kind(
    tokens: Sequence[Token], start: int, value: Sequence[Token], stems: Sequence[str], about: Sequence[str]
) -> bool:
    """Return whether "X is Y" without a noun that names the value excludes that X is something else too."""
    if value[0].form in cues.INDEFINITE or tokens[0].form in cues.PRONOUNS:
        return False
    if all(_NUMBER.match(stem) for stem in stems):
        return True
    if any(_MANNER.match(token.form) for token in value):
        return False
    definite = any(token.form in cues.ARTICLES or token.form in {"my", "our", "of", "s"} for token in tokens[:start])
    return definite and (len(about) >= 2 or any(token.exact or token.name for token in value))


_PHRASES: dict[str, tuple[tuple[str, ...], ...]] = {}
for _phrase in sorted(cues.BEFORE_A_VALUE, key=len, reverse=True):
    if _phrase:
        _PHRASES[_phrase[0]] = (*_PHRASES.get(_phrase[0], ()), _phrase)


_NAME = r"(?P<{0}>[^\s,;:()]+(?:\s[^\s,;:()]+){{0,2}}?)"
_SHORT = r"(?P<{0}>[^\s,;:()]+(?:\s[A-Z][^\s,;:()]*){{0,2}})"


def _any(phrases: str) -> str:
    return "(?:" + "|".join(phrase.strip().replace(" ", r"\s") for phrase in phrases.split("|")) + ")"


_EDGE = (
    r"(?=\s*(?:[,;:!()]|\.(?:\s|\Z)|\Z|\s"
    + _any("for|in|on|as|to|at|by|since|because|and|when|für|im|als|pour|para|per|voor|för|dans|en")
    + r"\b))"
)
_NOW = _any("now|jetzt|maintenant|ahora|adesso|agora|nu|\u0442\u0435\u043f\u0435\u0440\u044c")
_INSTEAD = _any(
    "instead of|rather than|in place of|anstatt|anstelle von|statt|au lieu de|plutôt que|en lugar de|en vez de"
    "|invece di|al posto di|em vez de|ao invés de|in plaats van|istället för|вместо"
)
_NOT = _any("not|no longer|nicht|nicht mehr|pas|et non|et plus|non|y no|e non|não|e não|niet|inte|а не")
_MOVED = _any(
    r"moved?|switch(?:ed)?|migrat(?:ed|e|ion)|chang(?:ed|e)|went|renamed|gewechselt|umgestellt|umgezogen|migriert"
    r"|wechselte[n]?|passé\w*|migré\w*|changé\w*|cambi\w+|migr\w+|passat\w+|mud\w+|overgestapt|verhuisd|bytte"
    r"|flyttade|gick|пере\w+"
)
_FROM = _any("from|von|vom|de|du|da|dal|van|från|с|со")
_TO = r"\s" + _any("to|zu|auf|nach|vers|à|a|al|para|naar|till|на") + r"\s(?:(?:the|la|le|den|die|das)\s)?"
_MOVED_AFTER = _any("gewechselt|umgestellt|umgezogen|migriert|overgestapt|verhuisd")
_REPLACES = _any(
    r"(?:has )?replace[sd]?|supersede[sd]?|ersetzt|hat ersetzt|remplace|reemplaza|sustituye|sostituisce|substitui"
    r"|vervangt|ersätter"
)
_WAS = _any(r"was|wurde|a été|fue|è stat[oa]|foi|werd|har")
_REPLACED = _any(r"replaced|ersetzt|remplacée?|reemplazad[oa]|sostituit[oa]|substituíd[oa]|vervangen|ersatts")
_BY = _any("by|with|durch|par|por|da|door|av")
_OLD, _NEW = _SHORT.format("old"), _SHORT.format("new")
_LONG_OLD, _LONG_NEW = _NAME.format("old"), _NAME.format("new")
_REPLACEMENTS = (
    re.compile(rf"{_NEW}(?:\s{_NOW})?,\s(?:and\s|und\s)?{_NOT}\s(?:the\s|more\s)?{_OLD}{_EDGE}"),
    re.compile(rf"{_NEW}\s{_INSTEAD}\s{_OLD}{_EDGE}"),
    re.compile(
        rf"\b{_MOVED}\b(?P<between>[^.;]{{0,40}}?)\s{_FROM}\s(?:the\s)?{_LONG_OLD}{_TO}{_LONG_NEW}{_EDGE}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b{_FROM}\s{_LONG_OLD}{_TO}{_LONG_NEW}\s{_MOVED_AFTER}\b", re.IGNORECASE),
    re.compile(rf"\breplac(?:ed?|ing)\s(?:the\s)?{_LONG_OLD}\s{_BY}\s{_LONG_NEW}{_EDGE}", re.IGNORECASE),
    re.compile(rf"{_NEW}\s{_REPLACES}\s(?:the\s)?{_OLD}{_EDGE}"),
    re.compile(rf"{_OLD}\s{_WAS}\s{_REPLACED}\s{_BY}\s{_NEW}{_EDGE}"),
)


_TELLS = re.compile(
    rf",\s(?:and\s|und\s)?{_NOT}\s|\b(?:{_INSTEAD}|{_MOVED}|replac|{_REPLACES}|{_REPLACED})", re.IGNORECASE
)
"""What each of the patterns needs, all at once: most sentences have none of it."""


def replaced_values(sentence: str, language: str) -> Iterator[Replaced]:
    """Yield each value that a sentence names and replaces, as in "pnpm, not npm" or "moved from A to B"."""
    if not _TELLS.search(sentence):
        return
    for pattern in _REPLACEMENTS:
        match = pattern.search(sentence)
        if match is None:
            continue
        former = _stems(match["old"], language)
        present = _stems(match["new"], language)
        if not former or not present or former == present or re.fullmatch(r"[a-z]+(?:ed|ing)\.?", match["old"]):
            continue
        between = match.groupdict().get("between") or ""
        around = f"{sentence[: match.start()]} , {between} , {sentence[match.end() :]}"
        about = frozenset(_stems(around, language)) - frozenset(former) - frozenset(present)
        words = frozenset(words_of(match["old"].lower()))
        yield Replaced(
            former, present, about, f"{match['old'].rstrip('.')} gave way to {match['new'].rstrip('.')}", words
        )
        return


def _stems(text: str, language: str) -> tuple[str, ...]:
    return tuple(
        stem_of(token, language)
        for token in tokens_of(text)
        if token.form != CUT
        and (token.exact or not Content([token], language).is_empty(token.form))
        and token.form not in cues.PREPOSITIONS
    )
