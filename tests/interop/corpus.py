"""Made-up memories and questions in many languages, all drawn from one seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

WORDS = {
    "en": (
        "deploy target staging production database service memory config cache branding preference release deadline"
        " meeting server client token queue worker index search plan budget invoice team user account login session"
        " network error timeout retry backup restore migration schema table column vector model prompt agent tool test"
        " branch commit review merge pipeline container image cluster region latency metric alert report document"
        " I prefer use like hate never always my name is work at live in was previously now current latest active old"
        " legacy stale former deprecated present today yesterday the a of to and but or with for on from by not"
    ),
    "de": "Größe Straße Übung Bäcker Fluß Schlüssel Datenbank Dienst Gedächtnis heute gestern immer niemals löschen",
    "fr": "déploiement mémoire élève garçon naïve cœur œuvre réseau été hiver toujours jamais aujourd'hui l'équipe",
    "es": "mañana niño corazón base datos servicio siempre nunca ayer árbol pingüino útil",
    "pl": "zażółć gęślą jaźń łódź baza danych pamięć nigdy zawsze",
    "tr": "İstanbul ışık çalışma şifre veri güncel IĞDIR ığdır",
    "ru": "развёртывание память сервер база данных сегодня вчера ошибка всегда никогда Ёлка ёлка",
    "el": "μνήμη βάση δεδομένων ΟΔΟΣ οδός σήμερα χθες Σίσυφος",
    "ar": "ذاكرة قاعدة البيانات خادم اليوم أمس مشروع مُحَمَّد",
    "he": "זיכרון שרת מסד נתונים היום אתמול שָׁלוֹם",
    "hi": "स्मृति सर्वर डेटाबेस आज कल परियोजना क्षेत्र",
    "th": "ความจำ เซิร์ฟเวอร์ ฐานข้อมูล วันนี้ เมื่อวาน",
    "zh": "部署目标 数据库 服务器 记忆 今天 昨天 缓存 配置 项目 深圳 我们使用数据库",
    "ja": "データベース サーバー メモリ 今日 昨日 設定 ﾊﾝｶｸ プロジェクト かな カナ",
    "ko": "데이터베이스 서버 기억 오늘 어제 프로젝트 설정",
    "mixed": "😀 👩‍👩‍👧 🇩🇪 é é ﬁle Ⅳ ½ x² ﷺ 𝒳 𐐀𐐨 ǅ ß ẞ K Å ſ naı̈ve foo_bar foo-bar it's I'll user's"
    " C++ node.js v1.2.3 10.0.0.1 #42 50% $HOME a|b <b>x</b> `code` **bold** [link](u) 99 2026 007 ٣٤ १२",
}
SENTENCES = (
    "My name is {0} and I work at {1}.",
    "I prefer {0} over {1}; I never use {2}.",
    "The {0} uses {1} and the {2} depends on {3}.",
    "Always {0} before {1}. Never {2}!",
    "We shipped {0} on 2026-05-2{d} with 12 tests and 3 bugs, v1.{d}.0.",
    "{0} was the old {1}; {2} is the current {3} now.",
    "Gateway is owned by {0}. Atlas runs {1}.",
    "meeting about {0} yesterday, deadline 2026-06-1{d} for {1}",
    "- {0}\n- {1}\n- {2}\n\n```\n{3}\n```",
    "[role: user]\n{0} {1}\n[user:end]\n\n[role: assistant]\n{2} {3}\n[assistant:end]",
)
SOURCES = ("conversation", "user", "tool", "coding-agent-retain", "import", "notes é", "")
VERACITIES = ("unknown", "true", "false", "stated", "inferred", "tool", "imported", "likely_true", " Stated ")
TYPES = ("unknown", "fact", "episode", "preference", "")
SCOPES = ("session", "bank", "global", "channel")
TIME_WORDS = (
    *("now", "current", "latest", "recent", "today", "active", "yesterday", "tomorrow", "last week", "this month"),
    *("last monday", "next friday", "tuesday", "3 days ago", "in 2 weeks", "2 months ago", "recently", "a while ago"),
    *("2026-05-2{d}", "5/2{d}/2026", "May 2{d}", "march 3rd, 2026", "day before yesterday", "present"),
)
QUESTIONS = (
    *("what is the {0}", "how do I {0} the {1}?", "why did {0} fail", "do I prefer {0} or {1}", "who owns {0}"),
    *("when was {0} {1}", "where is the {0} of {1}", "{0} AND {1} NOT {2}", '"{0} {1}"', "NEAR({0} {1})", "{0}*"),
    *("my name", "what did we decide about {0}", "{0}; {1}, {2}!", "list all {0}", "compare {0} with {1}"),
)
ODD_QUERIES = ("", " ", "?", "the", "a", "😀", "ß", "%", "_", "''", '"', "\n", "the of and", "\u3000", "\ufeff")


@dataclass
class Source:
    """Draws everything from one seed."""

    seed: int

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self._words = {language: text.split() for language, text in WORDS.items()}
        self._english = self._words["en"]

    def word(self, language: str | None = None) -> str:
        """Return a word; half of them are English ones where no language is named."""
        draw = self.draw
        if language is None:
            language = "en" if draw.random() < 0.55 else draw.choice(list(WORDS))
        found = draw.choice(self._words[language])
        if draw.random() < 0.06:
            found = draw.choice((found.upper(), found.lower(), found.capitalize(), found[: len(found) // 2 + 1]))
        return found

    def text(self) -> str:
        """Return the text of a memory: a word, some sentences, or a long page."""
        draw = self.draw
        language = None if draw.random() < 0.6 else draw.choice(list(WORDS))
        if draw.random() < 0.4:
            return " ".join(self._filled(draw.choice(SENTENCES), language) for _ in range(draw.choice((1, 1, 1, 2, 4))))
        count = draw.choice((1, 2, 3, 5, 8, 13, 30, 60, 120, 400))
        gap = draw.choice((" ", " ", " ", ", ", ". ", "\n", "\t", "　", "; "))
        return gap.join(self.word(language) for _ in range(count))

    def _filled(self, pattern: str, language: str | None) -> str:
        return pattern.format(*(self.word(language) for _ in range(4)), d=self.draw.randrange(10))

    def options(self, now: str) -> dict[str, Any]:
        """Return options of a write, as the engine names them; many are left out."""
        draw = self.draw
        found: dict[str, Any] = {}
        choices = {
            "source": lambda: draw.choice(SOURCES),
            "importance": lambda: draw.choice((0, 0.1, 0.25, 0.5, 0.75, 0.9, 1, round(draw.random(), 3))),
            "scope": lambda: draw.choice(SCOPES),
            "memoryType": lambda: draw.choice(TYPES),
            "veracity": lambda: draw.choice(VERACITIES),
            "metadata": lambda: {"cwd": "/proj/" + self.word(), "n": draw.randrange(9), "é": [1.5, None, True, "x"]},
            "extract": lambda: draw.random() < 0.7,
            "extractEntities": lambda: True,
            "embedText": self.text,
            "extractText": self.text,
            "trustTier": lambda: draw.choice(("STATED", "IMPORTED", "DERIVED", "other")),
            "validUntil": lambda: draw.choice((now[:10], "2026-05-01", "2027-01-01", "2099-12-31T00:00:00.000Z")),
        }
        often = {"source": 0.7, "importance": 0.7, "extract": 0.6, "embedText": 0.1, "extractText": 0.1}
        for name, make in choices.items():
            if draw.random() < often.get(name, 0.25):
                found[name] = make()
        if draw.random() < 0.15:
            # An old memory would be trimmed as it is written, unless it is an imported one.
            found["timestamp"] = self.timestamp()
            found["trustTier"] = "IMPORTED"
        return found

    def timestamp(self) -> str:
        """Return a time in one of the forms that rows carry."""
        draw = self.draw
        day = f"2026-0{draw.randint(1, 6)}-{draw.randint(1, 28):02}"
        forms = ("{}", "{}T08:30:00.000Z", "{}T08:30:00Z", "{} 08:30:00", "{}T23:59:59+02:00", "{}T08:30")
        return draw.choice(forms).format(day)

    def query(self, seen: Sequence[str] = ()) -> str:
        """Return a question: words, words of memories that are there, questions, times."""
        draw = self.draw
        kind = draw.random()
        if kind < 0.03:
            return draw.choice(ODD_QUERIES)
        language = None if draw.random() < 0.6 else draw.choice(list(WORDS))
        if kind < 0.35:
            found = self._filled(draw.choice(QUESTIONS), language)
        elif kind < 0.6 and seen:
            words = draw.choice(seen).split() or ["x"]
            start = draw.randrange(len(words))
            found = " ".join(words[start : start + draw.choice((1, 2, 3, 5, 9))])
        else:
            found = " ".join(self.word(language) for _ in range(draw.choice((1, 1, 2, 2, 3, 4, 6, 14))))
        if draw.random() < 0.25:
            when = draw.choice(TIME_WORDS).format(d=draw.randrange(10))
            found = draw.choice((f"{found} {when}", f"{when} {found}"))
        return found + draw.choice(("", "", "", "?", ".", " !"))

    def story(self, memories: int) -> list[dict[str, Any]]:
        """Return the life of a bank: writes, edits, ends, nights in which memories are consolidated, and months."""
        draw = self.draw
        steps: list[dict[str, Any]] = []
        texts: list[str] = []
        now = "2026-06-01T12:00:00.000Z"
        while len(texts) < memories:
            kind = draw.random()
            of = draw.randrange(len(texts)) if texts else 0
            if kind < 0.80 or len(texts) < 3:
                content = draw.choice(texts) if texts and draw.random() < 0.06 else self.text()
                texts.append(content)
                steps.append({"op": "remember", "content": content, "options": self.options(now)})
            elif kind < 0.85:
                change = {"content": self.text()} if draw.random() < 0.7 else {"importance": round(draw.random(), 2)}
                steps.append({"op": "update", "of": of, **change})
            elif kind < 0.91:
                by = draw.choice((None, draw.randrange(len(texts))))
                steps.append({"op": "invalidate", "of": of, "by": by})
            elif kind < 0.93:
                steps.append({"op": "forget", "of": of})
            elif kind < 0.97:
                steps.append({"op": "advance", "ms": draw.choice((1, 999, 60_000, 3_600_000))})
            else:
                days = draw.choice((0.55, 0.6, 1, 9, 33, 200))
                steps += [{"op": "advance", "ms": int(days * 86_400_000)}, {"op": "sleep"}]
        return steps
