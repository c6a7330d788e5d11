"""The rows that extracted facts become: typed facts, their full-text copies, and the projections by category."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db import rows
from ipy_memory.clock import stable_id
from ipy_memory.jscompat.strings import well_formed

if TYPE_CHECKING:
    import sqlite3

    from ipy_memory.backends.mnemopi.store.extraction import Extracted

SENTENCE_IMPORTANCE = 0.7
RELATION_CONFIDENCE = 0.65
_LINE = "[^\n\r\u2028\u2029]"
_FLAGS = re.ASCII | re.IGNORECASE
_PREFERENCE = re.compile(rf"The user (?:prefers|dislikes) ({_LINE}+)", _FLAGS)
_INSTRUCTION = re.compile(rf"Instruction: ({_LINE}+)", _FLAGS)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class FactRows:
    """Writes the facts of one memory into an open transaction.

    Parameters
    ----------
    connection
        Of the bank, inside a transaction.
    session
        The session (bank) name that the rows carry.
    source_id
        The memory that the facts come from.
    now
        The instant, as ISO text.
    """

    connection: sqlite3.Connection
    session: str
    source_id: str
    now: str

    def add_extracted(self, extracted: Extracted) -> None:
        """Write everything that one text gave, category after category (T-14)."""
        for sentence in extracted.sentences():
            self.add_fact("entity", "fact", sentence, SENTENCE_IMPORTANCE, sentence)
        for fact in extracted.facts:
            if found := _PREFERENCE.fullmatch(fact):
                self._add_preference(fact, found[1])
            if found := _INSTRUCTION.fullmatch(fact):
                self._add_instruction(found[1], fact)
        for instruction in extracted.instructions:
            self._add_instruction(instruction, instruction)
        for preference in extracted.preferences:
            self._add_preference(preference, None)
        for event in extracted.timelines:
            found = _DATE.search(event)
            self.add_event(found[0] if found else None, event)
        for triple in extracted.kg:
            self.add_relation(*triple)

    def add_fact(self, type_: str, key: str, value: str, importance: float, snippet: str) -> None:
        """Write one typed fact and its full-text copy; a fact known already is not copied twice."""
        key, value = well_formed(key), well_formed(value)
        self._insert(
            "memoria_facts",
            message_idx=0,
            fact_type=type_,
            key=key,
            value=value,
            context_snippet=well_formed(snippet),
            importance=importance,
            timestamp=self.now,
            source_memory_id=self.source_id,
        )
        fact = {
            "fact_id": stable_id("\0".join((self.session, type_, key, value)), self.source_id),
            "session_id": self.session,
            "subject": key,
            "predicate": type_,
            "object": value,
            "timestamp": self.now,
            "source_msg_id": self.source_id,
            "confidence": importance,
        }
        rows.insert_once(self.connection, "facts", fact, ("fact_id",))

    def add_event(self, date: str | None, description: str) -> None:
        """Write one entry of the timeline."""
        self._insert(
            "memoria_timelines",
            date=date,
            message_idx=0,
            description=well_formed(description),
            source="extraction",
            source_memory_id=self.source_id,
        )

    def add_relation(self, subject: str, predicate: str, object_: str) -> None:
        """Write one relation into the knowledge graph."""
        triple = dict(
            zip(("subject", "predicate", "object"), map(well_formed, (subject, predicate, object_)), strict=True)
        )
        self._insert(
            "memoria_kg",
            **triple,
            message_idx=0,
            confidence=RELATION_CONFIDENCE,
            source_memory_id=self.source_id,
        )
        rows.insert(
            self.connection,
            "triples",
            {**triple, "valid_from": self.now, "source": self.source_id, "confidence": RELATION_CONFIDENCE},
        )

    def _add_preference(self, preference: str, topic: str | None) -> None:
        self._insert(
            "memoria_preferences",
            message_idx=0,
            preference=well_formed(preference),
            topic=topic and well_formed(topic),
            context_snippet=well_formed(preference),
            source_memory_id=self.source_id,
        )

    def _add_instruction(self, instruction: str, snippet: str) -> None:
        self._insert(
            "memoria_instructions",
            message_idx=0,
            instruction=well_formed(instruction),
            active=1,
            context_snippet=well_formed(snippet),
            source_memory_id=self.source_id,
        )

    def _insert(self, table: str, **row: object) -> None:
        rows.insert(self.connection, table, {"session_id": self.session, **row})
