"""A text as the audit compares it: its words and values, and its content without order, articles and endings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ipy_memory.audit import cues
from ipy_memory.ranking.words import STOP_WORDS, fold, shared_stems, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ipy_memory.ranking.words import Languages

CUT = "|"
"""Stands for the end of a clause."""
NOT = "\u00ac"
"""Stands for a negation."""

_MOST_LANGUAGES = 8
_TOKEN = re.compile(
    r"[$\u20ac\u00a3\u00a5]?\d{1,3}(?:,\d{3})+(?!\d)|(?<![\w)])-?[$\u20ac\u00a3\u00a5]?\d+(?:[.:,/-]\d+)*(?:\s?[%\u00b0]|[^\W\d_]+(?=[^\w]|\Z))?(?![\w])"
    r"|[@#~./\\$-]*\w+(?:(?:['\u2019.:/@_#\\~-]|::|->)+\w+)*(?:\+\+|#)?(?:\(\))?"
    r"|[=\u2192]|[^\w\s]|\n"
)
_NEGATED = re.compile(r"(?<=\w)n['\u2019]t\b")
_SCRIPT = re.compile("[\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ENDS = frozenset(",;:.!?()[]{}\u2013\u2014\n\uff0c\u3002\uff1b\uff1a\uff01\uff1f\u3001\u00b7\u2022=\u2192")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")


class Token(NamedTuple):
    """One word or value: ``exact`` ones (numbers, identifiers) are equal only as they are written, but for case."""

    form: str
    written: str
    exact: bool = False
    name: bool = False


def tokens_of(text: str) -> list[Token]:
    """Return the words and values of a text, with a :data:`CUT` wherever a clause ends."""
    text = unicodedata.normalize("NFKC", text) if not text.isascii() else text
    text = _NEGATED.sub(" not", text)
    found: list[Token] = []
    begins = True
    for match in _TOKEN.finditer(text):
        written = match[0]
        if written in _ENDS:
            if found and found[-1].form != CUT:
                found.append(Token(CUT, written))
            begins = begins or written in ".!?\n"
            continue
        if not any(map(str.isalnum, written)):
            continue
        found += _tokens(written, begins=begins)
        begins = False
    while found and found[-1].form == CUT:
        found.pop()
    return found


@lru_cache(maxsize=1 << 16)
def _tokens(written: str, *, begins: bool) -> list[Token]:
    """Return the tokens of one match; the list is shared, and never changed."""
    plain = written.lstrip("-.'\u2019").rstrip("'\u2019.:")
    if written[0] == "-" and plain[:1].isdigit() and written[1:2] != "-":
        plain = f"-{plain}"
    if re.fullmatch(r"\w+(?:-\w+)+", plain) and re.search(r"(?:\A|-)[^\W\d_]{4,}(?:-|\Z)", plain):
        # A hyphen between whole words is a sign like others: "search2-results" is "search2 results".
        return [token for piece in plain.split("-") for token in _tokens(piece, begins=begins)]
    if any(map(str.isdigit, plain)) or re.search(r"[_/\\@#~$]|\w[.:]\w|->|\+\+|\(\)", plain):
        if _SCRIPT.search(plain):
            return [token for word in words_of(plain) for token in _of_script(word)]
        exact = plain.lower().replace(",", "") if re.fullmatch(r"[^\d]?\d{1,3}(?:,\d{3})+", plain) else plain.lower()
        return [Token(re.sub(r"\s", "", exact), plain, exact=True)]
    if _SCRIPT.search(plain):
        return [token for word in words_of(plain) for token in _of_script(word)]
    pieces = [piece for piece in re.split(r"[-'\u2019]", plain) if piece]
    return [
        Token(
            piece.lower(),
            piece,
            exact=bool(_CAMEL.search(piece)),
            name=piece[:1].isupper() and not (begins and not place),
        )
        for place, piece in enumerate(pieces)
    ]


def _of_script(word: str) -> list[Token]:
    """Return a word of a script without spaces as overlapping pairs; its negations become one."""
    if not re.search("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]", word):
        return [Token(word, word)]
    word = re.sub("\u5df2\u7ecf|\u5df2\u7d93|\u5df2|\u73b0\u5728|\u76ee\u524d", "", word) or word
    word = re.sub("\u5df2\u7ecf|\u5df2\u7d93|\u5df2|\u73b0\u5728|\u76ee\u524d", "", word) or word
    bare = re.sub("\u4e0d\u518d|\u6ca1\u6709|\u6c92\u6709|[\u4e0d\u6ca1\u6c92\u672a\u65e0\u7121]", "", word)
    bare = re.sub("(\u307e)\u305b\u3093|\u3057?\u306a\u3044\\Z", "\\1\u3059", bare)
    negated = [Token(NOT, NOT)] if bare != word else []
    runs = re.findall(r"[a-zA-Z0-9_.]+|[^a-zA-Z0-9_.]+", bare)
    found = []
    for run in runs:
        if run.isascii():
            found.append(Token(run.lower(), run, exact=any(map(str.isdigit, run))))
        else:
            pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
            found += [Token(pair, pair) for pair in pairs]
    return negated + found


@dataclass(frozen=True)
class Content:
    """What a text says, in one language: stems in order, each phrase that a preposition begins, and the clauses."""

    tokens: Sequence[Token]
    language: str

    @cached_property
    def _read(self) -> tuple[list[str], list[list[str]], list[tuple[str, str]], dict[str, str], bool]:
        stems: list[str] = []
        clauses: list[list[str]] = [[]]
        phrases: list[tuple[str, str]] = []
        surfaces: dict[str, str] = {}
        preposition = ""
        negated = False
        for token in self.tokens:
            form = token.form
            if form == CUT or form in cues.CONJUNCTIONS:
                clauses.append([])
                preposition = ""
            elif form in cues.NEGATIONS or form == NOT:
                negated = not negated
            elif form in cues.PREPOSITIONS:
                preposition = form
            elif token.exact or (token.name and form not in cues.ARTICLES) or not self.is_empty(form):
                stem = stem_of(token, self.language)
                if preposition:
                    phrases.append((preposition, stem))
                    preposition = ""
                stems.append(stem)
                clauses[-1].append(stem)
                if token.name:
                    surfaces[stem] = fold(form)
        return stems, [clause for clause in clauses if clause], phrases, surfaces, negated

    def is_empty(self, form: str) -> bool:
        """Return whether a word says nothing of its own."""
        return (
            form in cues.ARTICLES
            or form in cues.FILLERS
            or form in cues.EMPTY_VERBS
            or form in cues.EMPTY_WORDS
            or form in cues.BESIDE_A_NEGATION
            or (form in STOP_WORDS[self.language] and form not in _TELLING)
        )

    @property
    def stems(self) -> list[str]:
        """The stems of the content words, and the values."""
        return self._read[0]

    @property
    def phrases(self) -> list[tuple[str, str]]:
        """Each preposition with the content word behind it."""
        return self._read[2]

    @property
    def negated(self) -> bool:
        """Whether the text denies what it says."""
        return self._read[4]

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The stems without order; a negation is one of them."""
        return tuple(sorted([*self.stems, NOT] if self.negated else self.stems))

    def says_the_same(self, other: Content) -> bool:
        """Return whether another text with the same key differs in nothing but the order of clauses."""
        stems, clauses, phrases, names, _ = self._read
        stems_there, clauses_there, phrases_there, names_there, _ = other._read
        if any(names_there.get(stem, name) != name for stem, name in names.items()):
            return False
        if stems == stems_there:
            return Counter(p for p, _ in phrases) == Counter(p for p, _ in phrases_there)
        if sorted(clauses) == sorted(clauses_there):
            return True
        if Counter(phrases) == Counter(phrases_there) and _same_clauses(clauses, clauses_there):
            return True
        if Counter(phrases) != Counter(phrases_there):
            return self._equated() is not None and self._equated() == other._equated()
        return one_block_moved(_without(stems, phrases), _without(stems_there, phrases)) or (
            self._equated() is not None and self._equated() == other._equated()
        )

    def _equated(self) -> tuple[tuple[str, ...], ...] | None:
        """Return the two sides of a sentence that says that one thing is another, in any order."""
        at = [place for place, token in enumerate(self.tokens) if token.form in cues.COPULAS]
        if len(at) != 1:
            return None
        sides = (Content(self.tokens[: at[0]], self.language), Content(self.tokens[at[0] + 1 :], self.language))
        return tuple(sorted(side.key for side in sides))


_TELLING = frozenset({"my", "your", "his", "her", "our", "must", "should", "may", "might", "off", "out", "only"})
"""Function words that two texts may not differ in."""


def stem_of(token: Token, language: str) -> str:
    """Return what stands for a word wherever its ending does not matter."""
    if token.exact or _SCRIPT.search(token.form):
        return f"={token.form}" if token.exact else token.form
    return shared_stems().of_word(token.form, language)[0]


def _without(stems: Sequence[str], phrases: Iterable[tuple[str, str]]) -> list[str]:
    moved = Counter(stem for _, stem in phrases)
    kept = []
    for stem in stems:
        if moved[stem]:
            moved[stem] -= 1
        else:
            kept.append(stem)
    return kept


def _same_clauses(clauses: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> bool:
    """Return whether two texts have the same clauses in any order, in each of which one block may have moved."""
    pairs = zip(sorted(clauses, key=sorted), sorted(others, key=sorted), strict=False)
    return len(clauses) == len(others) and all(
        sorted(one) == sorted(other) and one_block_moved(one, other) for one, other in pairs
    )


def one_block_moved(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two sequences are equal once one block of the first has moved."""
    begin = 0
    while begin < len(one) and one[begin] == other[begin]:
        begin += 1
    end = len(one)
    while end > begin and one[end - 1] == other[end - 1]:
        end -= 1
    middle, there = list(one[begin:end]), list(other[begin:end])
    return not middle or any(middle[at:] + middle[:at] == there for at in range(1, len(middle)))


def languages_for(tokens: Sequence[Token], languages: Languages) -> Sequence[str]:
    """Return the languages to read a text in: its own where its function words decide, else the most frequent ones."""
    if len(languages.names) == 1:
        return languages.names
    words = [token.form for token in tokens]
    own = languages.decided(words)
    return (own,) if own else languages.names[:_MOST_LANGUAGES]
