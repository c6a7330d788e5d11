"""From text to the stems that an index holds: folding, languages, identifiers, scripts without spaces.

A bank has one or more languages, told apart by counting function words. A row is stemmed in its own language; a word
of a query is stemmed in each of the bank's, and any of these stems answers it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_LISTS: Mapping[str, str] = {
    "english": """
        a an and are as at be by for from how i in is it of on or that the this to was what when where who with
        do does did has have had will would could should can may might been being were am which whom why whose
        his her he she they them their its my your our me you we us not no if so than then there here into about over
        any some s t d ll m re ve""",
    "german": """
        der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war waren
        wird
        werden wurde hat haben hatte ich du er sie es wir ihr mich mir dich dir uns euch sich mein dein sein unser auf
        in im an am zu zum zur von vom mit bei für über unter aus nach vor um als wie wenn dass ob wo wer was wann
        warum welche welcher welches auch noch nur schon sehr hier dort kann soll muss""",
    "french": """
        le la les un une des du de et ou mais ne pas est sont était été être a ont avait ai as je tu il elle on nous
        vous ils elles me te se mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ce cet cette ces qui
        que quoi dont où quand comment pourquoi quel quelle dans sur sous pour par avec sans au aux en y plus très d l
        c qu n s j t m à vers puis""",
    "spanish": """
        el la los las un una unos unas de del y o pero no es son era fue ser está están estaba ha han había he yo tú
        él
        ella nosotros ellos ellas me te se mi tu su sus nuestro nuestra este esta estos estas ese esa que quien qué
        cuál cuáles cuándo dónde cómo por para con sin en al a sobre entre muy más también ya hay lo le les después
        hacia""",
    "italian": """
        il lo la i gli le un uno una di del dello della dei degli delle e o ma non è sono era erano essere ha hanno
        aveva ho io tu lui lei noi voi loro mi ti si ci vi mio mia tuo tua suo sua nostro questo questa questi queste
        quello quella che chi cosa quale quando dove come perché per con senza in nel nella nei a al alla ai da dal
        dalla su sul sulla più molto anche già poi verso""",
    "portuguese": """
        o a os as um uma uns umas de do da dos das e ou mas não é são era foi ser está estão tem têm tinha eu tu ele
        ela nós vocês eles elas me te se meu minha seu sua nosso nossa este esta estes estas esse essa isso que quem
        qual quando onde como porque por para com sem em no na nos nas ao à pelo pela mais muito também já depois""",
    "dutch": """
        de het een en of maar niet geen is zijn was waren wordt worden werd heeft hebben had ik jij je hij zij ze wij
        we jullie mij me jou hem haar ons mijn jouw uw dit dat deze die wie wat waar wanneer waarom hoe welke in op
        aan
        te ten ter van met bij voor over onder uit naar om als ook nog al er zeer kan moet""",
    "swedish": """
        en ett den det de och eller men inte är var vara blir blev har hade jag du han hon vi ni de mig dig honom
        henne
        oss er dem min din sin vår denna detta dessa som vem vad var när varför hur vilken vilket i på av till från
        med
        utan för över under efter om så också mycket kan ska måste""",
    "russian": """
        и в во не что он она оно они я ты мы вы на с со как а то все всё так его её их но да к ко у же за бы по только
        мне было были был была есть от меня ещё нет о об из ему мой наш наши нашими потом всё когда где кто какой
        какая какие почему чем до для при
        над под это этот эта эти этого мой твой наш ваш""",
    "turkish": """
        ve veya ama değil bir bu şu o ben sen biz siz onlar mi mı mu mü için ile gibi kadar daha çok en ne nerede kim
        hangi nasıl neden niçin da de ki var yok olan olarak her""",
    "finnish": """
        ja tai mutta ei ole on oli olivat olla minä sinä hän me te he se ne tämä tuo nämä joka mikä mitä missä milloin
        miksi kuka kuinka että jos kun kuin myös vain hyvin""",
}

STOP_WORDS: Mapping[str, frozenset[str]] = {language: frozenset(text.split()) for language, text in _LISTS.items()}
"""Lower-case words as written, with their accents."""


DEFAULT = "english"
"""The language of text that has no function words."""

_ENOUGH = 2
"""So many function words, and more than of any other language, decide a row's language."""
_SHARE = 0.02
"""A language that fewer of a bank's decided rows have does not count as one of the bank's."""
_SAMPLE = 2_000

# Word characters and the marks of scripts whose vowels are marks (Hebrew and Arabic points, Indic, Thai, Khmer).
_WORD = re.compile(
    r"(?:\w|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u109f\u0e00-\u0eff\u1780-\u17d3])+"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Scripts that are written without spaces: kana, Han (also its later planes), Hangul, Thai, Lao, Khmer, Burmese.
_UNSPACED = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_ACCENTS = re.compile("[\u0300-\u036f]")


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are written."""
    return _WORD.findall(text if text.isascii() else unicodedata.normalize("NFKC", text))


def fold(word: str) -> str:
    """Return a word in lower case without accents."""
    if word.isascii():
        return word.lower()
    plain = unicodedata.normalize("NFD", word.casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", plain))


class Languages:
    """The languages of a bank, and the language of one text among them.

    Parameters
    ----------
    names
        Names of Snowball algorithms that have a list of function words, the most frequent first.
    """

    def __init__(self, names: Sequence[str] = (DEFAULT,)) -> None:
        self.names = tuple(names) or (DEFAULT,)
        self._of_word: dict[str, tuple[str, ...]] = {}
        for name in self.names:
            for word in STOP_WORDS[name]:
                self._of_word[word] = (*self._of_word.get(word, ()), name)

    @classmethod
    def of_rows(cls, texts: Iterable[str]) -> Languages:
        """Return the languages that a sample of texts is written in; English where nothing decides."""
        every = cls(tuple(STOP_WORDS))
        counts: Counter[str] = Counter()
        votes: Counter[str] = Counter()
        for text, _ in zip(texts, range(_SAMPLE), strict=False):
            words = words_of(text)
            votes.update(every._votes(words))
            if (name := every.decided(words)) is not None:
                counts[name] += 1
        # Notes of a few words decide nothing one by one: then all of them together do.
        counts = counts or Counter(dict(votes.most_common(1)))
        least = max(1, _SHARE * counts.total())
        return cls([name for name, count in counts.most_common() if count >= least] or (DEFAULT,))

    def of(self, words: Sequence[str]) -> str:
        """Return the language of a text's words: the bank's first where its function words do not decide."""
        return self.names[0] if len(self.names) == 1 else self.decided(words) or self.names[0]

    def is_stop_word(self, word: str, languages: Iterable[str]) -> bool:
        """Return whether a word is a function word of one of the languages."""
        lower = word.lower()
        return any(lower in STOP_WORDS[name] for name in languages)

    def _votes(self, words: Sequence[str]) -> Counter[str]:
        votes: Counter[str] = Counter()
        for word in words:
            votes.update(self._of_word.get(word.lower(), ()))
        return votes

    def decided(self, words: Sequence[str]) -> str | None:
        """Return the language that the function words of a text decide; ``None`` where they decide none."""
        best = self._votes(words).most_common(2)
        if not best or best[0][1] < _ENOUGH or (len(best) == 2 and best[1][1] == best[0][1]):
            return None
        return best[0][0]


class Stems:
    """Stems of words by language; each distinct word is stemmed once."""

    def __init__(self) -> None:
        self._stemmers: dict[str, Callable[[str], str]] = {}
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}

    def of_word(self, word: str, language: str) -> tuple[str, ...]:
        """Return the stems of a word: its own first, then those of its parts if it is an identifier.

        Scripts without spaces give overlapping pairs of characters.
        """
        key = (language, word)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = tuple(self._stems(word, language))
        return known

    def of_query(self, text: str, languages: Languages) -> list[tuple[str, ...]]:
        """Return what a query asks for, each thing once: the stems that answer it, any of them.

        Function words are left out unless there is nothing else.
        """
        words = words_of(text)
        asked_in = {languages.of(words)} | ({DEFAULT} & set(languages.names))
        full = [word for word in words if not languages.is_stop_word(word, asked_in)]
        # An identifier that is a function word as a whole still asks for its parts.
        found: dict[tuple[str, ...], None] = {}
        for word in words:
            forms = [self.of_word(word, name) for name in languages.names]
            longest = max(map(len, forms))
            for place in range(longest):
                if place == 0 and full and word not in full:
                    continue
                found[tuple(dict.fromkeys(form[place] for form in forms if place < len(form)))] = None
        return list(found)

    def forget(self) -> None:
        """Drop what was remembered of single words."""
        self._known.clear()

    def _stems(self, word: str, language: str) -> list[str]:
        folded = fold(word)
        if _UNSPACED_RUN.search(folded):
            return [stem for run in _runs(folded) for stem in self._of_run(run, language)]
        stems = [self._stem(folded, word, language)]
        if "_" in word or (not word.islower() and _CAMEL.search(word)):
            parts = [part for piece in word.split("_") if piece for part in _CAMEL.split(piece) if part]
            if len(parts) > 1:
                stems += [self._stem(fold(part), part, language) for part in parts]
        return stems

    def _of_run(self, run: str, language: str) -> list[str]:
        if _UNSPACED_RUN.fullmatch(run):
            return [run[at : at + 2] for at in range(len(run) - 1)] or [run]
        return [self._stem(run, run, language)]

    def _stem(self, folded: str, written: str, language: str) -> str:
        stem = self._stemmers.get(language)
        if stem is None:
            import snowballstemmer  # loaded with the first index, not with the extension

            stem = self._stemmers[language] = snowballstemmer.stemmer(language).stemWord
        # A stemmer's rules are for its language's own letters: accents go after it, not before.
        return fold(stem(folded if written.isascii() else unicodedata.normalize("NFC", written.lower())))


def _runs(word: str) -> list[str]:
    return [run for run in re.split(f"([{_UNSPACED}]+)", word) if run]


@lru_cache(maxsize=1)
def shared_stems() -> Stems:
    """Return the stems of this process, so that several banks share them."""
    return Stems()
