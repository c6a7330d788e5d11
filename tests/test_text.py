"""The tools' exact texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipy_memory import text
from ipy_memory.clock import FixedClock
from ipy_memory.jscompat import strings as js
from ipy_memory.model import Hit

NOON = FixedClock("2026-06-01T12:00:59.999Z").now_ms()
FULL = Hit(id="7f", content="Tea", source="notes", timestamp="2026-05-30T09:00:00.000Z", score=0.25, importance=0.9)


@pytest.mark.claim("R-06", "R-07")
def test_the_recall_text_counts_its_bullets_and_cuts_the_minute() -> None:
    assert text.recall_text(["- a"], NOON) == "Found 1 relevant memory (as of 2026-06-01 12:00 UTC):\n\n- a"
    assert text.recall_text(["- a", "- b"], NOON) == (
        "Found 2 relevant memories (as of 2026-06-01 12:00 UTC):\n\n- a\n\n- b"
    )


@pytest.mark.claim("R-14", "F-03")
def test_the_texts_of_an_empty_answer() -> None:
    assert text.NO_MEMORIES == "No relevant memories found."
    assert text.NO_REFLECTION == "No relevant information found to reflect on."


@pytest.mark.claim("R-09", "R-10")
@pytest.mark.parametrize(
    ("hit", "bullet"),
    [
        (FULL, "- Tea (id: 7f) [notes] (2026-05-30) c:0.3"),
        (Hit(id=None, content="Tea"), "- Tea (id unavailable)"),
        (Hit(id="", content="Tea", source="", timestamp=""), "- Tea (id unavailable)"),
        (Hit(id="7f", content="Tea", importance=0.45), "- Tea (id: 7f) c:0.5"),
        (Hit(id="7f", content="Tea", score=0.0, importance=0.9), "- Tea (id: 7f) c:0.0"),
        (Hit(id="7f", content="Tea\nmore", timestamp="Sat, 30 May 2026"), "- Tea\nmore (id: 7f) (Sat, 30 Ma)"),
    ],
)
def test_the_local_bullet(hit: Hit, bullet: str) -> None:
    assert text.mnemopi_bullet(hit) == bullet


@pytest.mark.claim("R-08")
@pytest.mark.parametrize(
    ("hit", "bullet"),
    [
        (Hit(id="x", content="Tea", type="world", mentioned_at="2026-05-30T09:00:00+00:00"),
         "- Tea [world] (2026-05-30T09:00:00+00:00)"),
        (Hit(id="x", content="Tea", type="", mentioned_at=""), "- Tea"),
        (Hit(id="x", content=""), "- "),
    ],
)  # fmt: skip
def test_the_remote_bullet(hit: Hit, bullet: str) -> None:
    assert text.hindsight_bullet(hit) == bullet


@pytest.mark.claim("F-02")
@pytest.mark.parametrize(
    ("query", "context", "asked"),
    [
        (" q ", None, " q "),
        (" q ", " \n\ufeff", " q "),
        (" q ", "\tc ", "q\n\nAdditional context:\nc"),
        ("", "c", "\n\nAdditional context:\nc"),
    ],
)
def test_the_reflect_query(query: str, context: str | None, asked: str) -> None:
    assert text.reflect_query(query, context) == asked


def hits(count: int) -> list[Hit]:
    return [Hit(id=str(n), content=f" m{n} ", source="notes", score=1 - n / 100) for n in range(count)]


@pytest.mark.claim("F-03")
@pytest.mark.parametrize(
    ("count", "sections"),
    [(1, (1, 0, 0)), (3, (1, 2, 0)), (4, (3, 1, 0)), (8, (3, 5, 0)), (9, (3, 5, 1)), (11, (3, 5, 3)), (40, (3, 5, 3))],
)
def test_the_reflection_shows_at_most_eleven(count: int, sections: tuple[int, int, int]) -> None:
    parts = text.context_sections(hits(count))
    assert tuple(map(len, parts)) == sections
    shown = text.reflect_text(hits(count))
    assert shown.startswith("Based on recalled memories:\n\n## Top Facts\n- m0 (?, notes, c:1.0)\n")
    assert shown.endswith(f"\n\n_({sum(sections)} memories retrieved)_")
    assert ("## Supporting Context" in shown, "## Recent Signals" in shown) == (sections[1] > 0, sections[2] > 0)


def test_a_reflection_line_is_cut_and_says_what_is_missing() -> None:
    (line,), _, _ = text.context_sections([Hit(id="1", content="x" * 300, source=None, score=0.5)])
    assert line == "x" * 199 + "… (?, unknown, c:0.5)"
    (line,), _, _ = text.context_sections([Hit(id="1", content="x", source="", timestamp="2026-05-30T", score=None)])
    assert line == "x (2026-05-30, , c:0.0)"


@pytest.mark.claim("F-03")
def test_the_reflection_as_text_and_as_data() -> None:
    shown = [f"m{n} (?, notes, c:{js.to_fixed(1 - n / 100)})" for n in range(9)]
    assert text.context_text(hits(9)) == "\n".join(
        [
            "## Top Facts",
            *(f"- {line}" for line in shown[:3]),
            "",
            "## Supporting Context",
            *(f"- {line}" for line in shown[3:8]),
            "",
            "## Recent Signals",
            f"- {shown[8]}",
            "",
            "_(9 memories retrieved)_",
        ]
    )


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_no_memory_closes_its_block(contents: list[str]) -> None:
    block = text.mnemopi_block([Hit(id="1", content=c + "</memories>" + c) for c in contents], NOON, js.trim)
    assert block.startswith("<memories>\n")
    assert block.endswith("\n</memories>")
    assert block.count("</memories>") == 1
    assert block.count("<\\/memories>") == len(contents)


@pytest.mark.claim("T-04", "T-05")
def test_the_retain_texts() -> None:
    assert [text.stored_text(n) for n in (1, 2)] == ["1 memory stored.", "2 memories stored."]
    assert [text.queued_text(n) for n in (1, 2)] == ["1 memory queued.", "2 memories queued."]


@pytest.mark.claim("M-04")
def test_the_edit_texts() -> None:
    assert text.edited_text("7f", "updated", "proj", "working") == "Memory 7f updated in bank proj (working)."
    assert text.not_found_text("7f") == "Memory 7f was not found."
    assert text.not_found_text("7f", "proj", "episodic") == "Memory 7f was not found in bank proj (episodic)."
    assert text.read_only_fact_text("7f", "proj") == (
        "Memory 7f is a read-only fact in bank proj (fact); it cannot be edited. Read it with memory://7f."
    )


@pytest.mark.claim("R-16", "R-17")
def test_the_texts_of_a_missing_state() -> None:
    assert text.not_initialised("Mnemopi") == "Mnemopi backend is not initialised for this session."
    assert text.not_initialised("Hindsight") == "Hindsight backend is not initialised for this session."


def test_an_early_year_is_written_without_leading_zeros() -> None:
    assert text.current_time(FixedClock("0999-12-31T23:59:59Z").now_ms()) == "999-12-31 23:59"


@pytest.mark.claim("T-06", "T-08", "T-10")
def test_the_notes_on_a_retain() -> None:
    assert text.not_stored_text(1, 3, "proj", "disk full") == (
        "1 of 3 memories were not stored in bank proj: disk full"
    )
    assert [text.redacted_note(n) for n in (1, 2)] == [
        "1 credential was replaced by [REDACTED].",
        "2 credentials were replaced by [REDACTED].",
    ]
    assert [text.duplicate_note(n) for n in (1, 2)] == [
        "1 item was known already; its memory was brought up to date.",
        "2 items were known already; their memories were brought up to date.",
    ]


@pytest.mark.claim("R-13", "M-05")
def test_why_an_address_shows_nothing() -> None:
    missing = "Mnemopi memory 7f not found in the calling session's scoped bank. Use `recall` to list available ids."
    assert text.unreadable("memory://7f/more", "mnemopi") == text.memory_missing("7f") == missing
    assert text.unreadable("memory://7f", "hindsight") == (
        "Hindsight memories are not addressable via memory://. Recall results are final — use `recall` to search or "
        "`reflect` to synthesize. `read memory://<id>` is only available with memory.backend=mnemopi."
    )
    nameless = "memory:// URL requires a namespace: memory://root or memory://<memory-id>"
    assert [text.unreadable("memory://", backend) for backend in ("mnemopi", "hindsight")] == [nameless, nameless]
    assert text.unreadable("memory://root", "mnemopi") == (
        "File-backed memory artifacts only exist with memory.backend=local (active backend: mnemopi). Use "
        "`recall`/`reflect` to search Mnemopi memories, or `read memory://<memory-id>` for a full row."
    )
    assert text.unreadable("memory://root", "hindsight") == (
        "File-backed memory artifacts only exist with memory.backend=local (active backend: hindsight). Use "
        "`recall`/`reflect` to search Hindsight memories."
    )
    assert text.unreadable("memory://7f", "off") == "Unknown protocol: memory://"


@pytest.mark.claim("R-21", "R-22")
def test_the_texts_of_banks_that_did_not_answer() -> None:
    assert text.bank_failed("proj", "it is locked") == "Bank proj did not answer: it is locked"
    assert text.all_targets_failed([("proj", "locked"), ("default", "damaged")]) == (
        "Mnemopi recall failed for all scoped targets (proj: locked; default: damaged)"
    )


def test_the_notes_on_a_bank() -> None:
    assert text.bank_renamed("proj", "old") == (
        "Bank proj was copied or renamed by hand: its memories are those of bank old, which the agent does not show "
        "here; %recall --bank proj does."
    )
    assert text.index_damaged("proj") == (
        "The full-text index of bank proj is damaged, so words are not found in it. No memories are lost: run %memory "
        "doctor --repair"
    )


def test_the_notes_on_vectors() -> None:
    assert text.VECTORS_UNUSED == (
        "This bank holds vectors, but no embedder is active here: the agent would also use them, so its hits may "
        "differ."
    )
    assert text.vectors_unanswered("small", "timeout") == (
        "Recall went by text alone: small gave no vector for the query (timeout). No memories are lost; see %memory "
        "embeddings status."
    )
    assert text.vectors_of_another_model("proj", ["large", "old"], "small") == (
        "Bank proj holds vectors of large, old, which cannot be compared with those of small; its memories were found "
        "by text. No memories are lost: %memory embeddings reindex computes the vectors anew."
    )
    assert text.vectors_of_another_size("proj", [384, 768], 3) == (
        "Bank proj holds vectors of 384, 768 numbers, the query's has 3; similarities mean little. No memories are "
        "lost: %memory embeddings reindex computes the vectors anew."
    )
