"""Made-up text that is shaped like real memories: common and rare words, short notes and long pages."""

from __future__ import annotations

import random
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMON = (  # noqa: SIM905
    "the a of to and in is for on with that it as was be by are we this from at or not have use can has will an our"
    " but they if which when all so there been one their do you should was now current latest previously legacy old"
    " deploy target staging production database service memory config cache preference release deadline meeting server"
    " client token queue worker index search plan team user account login session network error timeout retry backup"
    " restore migration schema table column vector model prompt agent tool test branch commit review merge pipeline"
    " container image cluster region latency metric alert report document prefers decided always never"
).split()
_STARTS = "b c d f g h k l m n p r s t v w br cl dr fl gr pl pr st tr".split()  # noqa: SIM905
_MIDDLES = "a e i o u ai ea io ou".split()  # noqa: SIM905
_ENDS = " n r s t l m nd rt st ck x".split(" ")  # noqa: SIM905


class Texts:
    """Draws texts and queries from one seed."""

    def __init__(self, seed: int, words: int = 8000) -> None:
        self.draw = random.Random(seed)
        made = {self._word() for _ in range(words)}
        self.words = _COMMON + sorted(made - set(_COMMON), key=lambda word: (len(word), word))
        # Zipf's law: the nth most common word is about n times rarer than the first.
        self._weights = list(accumulate(1 / (place + 3) for place in range(len(self.words))))

    def _word(self) -> str:
        draw = self.draw
        size = draw.choice((1, 2, 2, 3))
        return "".join(draw.choice(_STARTS) + draw.choice(_MIDDLES) for _ in range(size)) + draw.choice(_ENDS)

    def memory(self) -> str:
        """Return a text: a median of two dozen words, some of one line, a few of several pages."""
        draw = self.draw
        left = min(1200, max(4, round(draw.lognormvariate(3.2, 0.9))))
        sentences = []
        while left > 0:
            count = min(left, draw.randint(5, 18))
            words = draw.choices(self.words, cum_weights=self._weights, k=count)
            sentences.append(" ".join(words).capitalize() + draw.choice((".", ".", ".", "?", ";")))
            left -= count
        return " ".join(sentences)

    def queries(self, count: int) -> Iterator[str]:
        """Yield questions of a few words, some with a time in them; no two are the same."""
        draw = self.draw
        seen: set[str] = set()
        while len(seen) < count:
            words = draw.choices(self.words, cum_weights=self._weights, k=draw.choice((1, 2, 2, 3, 3, 4, 5, 7)))
            query = draw.choice(("{}", "{}", "what is {}", "how do we {}?", "latest {}", "{} last week"))
            query = query.format(" ".join(words))
            if query not in seen:
                seen.add(query)
                yield query
