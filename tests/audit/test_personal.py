"""Personal data in memories, each with what only looks like it."""

from __future__ import annotations

import pytest

from ipy_memory.audit.personal import is_iban, luhn, personal
from tests.audit.notes import found

HELD = {
    "mail dana.k@corp.io please": "an e-mail address",
    "dana@firma.de: not after six": "an e-mail address",
    "Call +49 30 901820 today": "a telephone number",
    "+1 (415) 555-2671": "a telephone number",
    "(415) 555-2671": "a telephone number",
    "phone: 030 1234567": "a telephone number",
    "\u7535\u8bdd 138 1234 5678": "a telephone number",
    "card 4539 1488 0343 6467": "a card number",
    "IBAN DE89 3704 0044 0532 0130 00": "an IBAN",
    "GB82WEST12345698765432": "an IBAN",
    "SSN 536-22-1234": "a US social security number",
    "AB 12 34 56 C": "a UK national insurance number",
    "DNI 12345678Z": "a Spanish identity number",
    "RSSMRA85T10A562S": "an Italian tax code",
    "2 55 08 14 168 025 38": "a French social security number",
    "131052-308T": "a Finnish identity code",
    "811218-9876": "a Swedish personal number",
    "529.982.247-25": "a Brazilian CPF",
    "11010519491231002X": "a Chinese identity number",
    "PESEL 44051401359": "a Polish PESEL",
    "passport no. C01234567": "a passport number",
}
FREE = [
    "git@github.com:a/b.git",
    "icon@2x.png",
    "npm i left-pad@1.2.3",
    "ssh deploy@host.acme.com",
    "postgres://u:p@db.acme.com/x",
    "at 2024-05-01 10:22:33 +0200",
    "10.0.0.1 and 192.168.100.200",
    "timestamp 1714567890123",
    "epoch 1700000000000000",
    "ids 123456789012345678",
    "call 3 functions 1200 times",
    "card 4539 1488 0343 6468",
    "DE89 3704 0044 0532 0130 01",
    "12345678A",
    "order 2024-000-1234",
]


@pytest.mark.parametrize(("text", "kind"), HELD.items())
def test_personal_data_is_found(text: str, kind: str) -> None:
    (one,) = found(personal, text)
    assert kind in one.evidence
    assert not any(char.isdigit() for char in one.evidence)


@pytest.mark.parametrize("text", FREE)
def test_what_only_looks_like_it_is_not(text: str) -> None:
    assert found(personal, text) == []


def test_addresses_and_cards_of_examples_count_little() -> None:
    severities = [found(personal, text)[0].severity for text in ("a@example.com", "4242 4242 4242 4242", "a@corp.io")]
    assert severities == ["low", "low", "medium"]


def test_check_digits() -> None:
    assert luhn("4539148803436467")
    assert not luhn("4539148803436466")
    assert is_iban("FR14 2004 1010 0505 0001 3M02 606")
    assert not is_iban("FR14 2004 1010 0505 0001 3M02 60")
