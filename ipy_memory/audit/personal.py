"""Memories that hold personal data: addresses, telephone numbers, cards, accounts, national ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from ipy_memory.audit.findings import finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ipy_memory.audit.findings import Finding, Rows, Severity, Tick

_EMAIL = re.compile(
    r"(?<![\w.+%/:@-])(?!git@)[\w.+%-]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,5}"
    r"(?!(?:png|jpe?g|gif|svg|webp|js|ts|py|json|md|ya?ml|local|internal|lan|localhost)\b)[a-z]{2,18}(?![\w@/-])(?!:[\w~/])",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?:ssh|scp|rsync|sftp|mosh|ssh-copy-id)\s(?:\S+\s){0,6}\Z")
_NOBODY = re.compile(r"@(?:[\w-]+\.)*(?:example|test|invalid)(?:\.|\Z)|^(?:no-?reply|do-?not-?reply)@", re.IGNORECASE)
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+|00)[1-9]\d{0,2}[ .\-/]?(?:\(0?\d{1,4}\)[ .\-/]?)?\d{1,5}(?:[ .\-/]?\d{2,5}){1,5}(?![\w-]|\.\d)"
    r"|(?<![\w.-])(?:\([2-9]\d{2}\) ?|[2-9]\d{2}-)\d{3}-\d{4}(?![\w-]|\.\d)"
)
_LOCAL_PHONE = re.compile(r"(?<![\w.+-])\(?\d{2,5}\)?(?:[ .\-/]?\d{2,5}){1,5}(?![\w-]|\.\d)")
_PHONE_WORD = re.compile(
    r"(?:phone|tel(?:\.|efon\w*|\u00e9fono|efono|efone|\u00e9phone|:)?|mobile?|mobil\w*|m\u00f3vil|cell(?:ulare|ular)?|call"
    r"|fax|handy\w*|portable|celular|telem\u00f3vel|rufnummer|puhelin\w*|whatsapp|signal|sms|\u0442\u0435\u043b\w*|\u7535\u8bdd|\u96fb\u8a71"
    r"|\u624b\u673a|\u624b\u6a5f|\u643a\u5e2f|\uc804\ud654)\b[^\d+]{0,24}\Z",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\w.+-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)")
_CARD_FORMS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}"
)
_CARD_WORD = re.compile(
    r"card|visa|master|amex|karte|carte|tarjeta|carta|cart\u00e3o|\u5361|\u30ab\u30fc\u30c9", re.IGNORECASE
)
_TEST_CARD = re.compile(r"4242|4111111|5555555555|378282246|6011111|4000000|5105105105|3530111")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_IBAN_LENGTHS = {
    code: length
    for length, codes in (
        (15, "NO"),
        (16, "BE"),
        (18, "DK FI FO GL NL"),
        (19, "MK SI"),
        (20, "AT BA EE KZ LT LU XK"),
        (21, "CH HR LI LV"),
        (22, "BG DE GB GE IE ME RS VA"),
        (23, "AE IL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN"),
        (25, "PT"),
        (26, "IS TR"),
        (27, "FR GR IT MC SM"),
        (28, "AL AZ CY DO HU LB PL"),
        (29, "BR QA UA"),
        (30, "JO KW MU"),
        (31, "MT"),
    )
    for code in codes.split()
}


def personal(rows: Rows, tick: Tick) -> Iterator[Finding]:
    """Yield a finding for each row that holds personal data."""
    for row in rows.every:
        tick()
        if held := held_in(row.content):
            kinds = ", ".join(dict.fromkeys(kind for kind, _ in held))
            severity: Severity = "medium" if any(not made_up for _, made_up in held) else "low"
            yield finding("pii", row, kinds, severity=severity, action="redact")


def held_in(text: str) -> list[tuple[str, bool]]:
    """Return the kinds of personal data in a text, each with whether it is a value of documentation or a test."""
    found: list[tuple[str, bool]] = []
    if "@" in text:
        found += [
            ("an e-mail address", bool(_NOBODY.search(match[0])))
            for match in _EMAIL.finditer(text)
            if not _LOGIN.search(text, 0, match.start())
        ]
    if not any(c.isdigit() for c in text):
        return found
    taken: list[tuple[int, int]] = []
    for match in _IBAN.finditer(text):
        if is_iban(match[0]):
            taken.append(match.span())
            found.append(("an IBAN", False))
    for match in _CARD.finditer(text):
        if _is_card(match[0], text[max(0, match.start() - 40) : match.start()]) and not _within(match, taken):
            taken.append(match.span())
            found.append(("a card number", bool(_TEST_CARD.search(_digits(match[0])))))
    for kind, match in _national(text):
        if not _within(match, taken):
            taken.append(match.span())
            found.append((kind, match[0] in {"078-05-1120", "219-09-9999", "123-45-6789"}))
    found += [("a telephone number", made_up) for made_up in _phones(text, taken)]
    return found


def _phones(text: str, taken: list[tuple[int, int]]) -> Iterator[bool]:
    for pattern in (_PHONE, _LOCAL_PHONE):
        for match in pattern.finditer(text):
            digits = _digits(match[0])
            if not 7 <= len(digits) <= 15 or _within(match, taken) or re.match(r"(?:19|20)\d\d-\d\d-\d\d", match[0]):
                continue
            named = _PHONE_WORD.search(text, max(0, match.start() - 40), match.start())
            if named or (pattern is _PHONE and (len(digits) >= 9 and not match[0].startswith("00"))):
                taken.append(match.span())
                yield bool(re.search(r"555-?0?1\d\d|1234567|0000000", match[0]))


def _within(match: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    return any(match.start() < end and start < match.end() for start, end in spans)


def _digits(text: str) -> str:
    return "".join(c for c in text if c.isdigit())


def luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of a card number."""
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def is_iban(text: str) -> bool:
    """Return whether a text is an account number with the right length and check digits."""
    plain = text.replace(" ", "")
    return (
        _IBAN_LENGTHS.get(plain[:2]) == len(plain)
        and int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1
    )


def _is_card(written: str, before: str) -> bool:
    digits = _digits(written)
    grouped = re.fullmatch(r"\d{4}(?:[ -]\d{4}){2,3}(?:[ -]\d{1,3})?|\d{4}[ -]\d{6}[ -]\d{4,5}", written)
    plain = written == digits and (len(digits) in {15, 16} or bool(_CARD_WORD.search(before)))
    return bool((grouped or plain) and len(set(digits)) > 1 and _CARD_FORMS.fullmatch(digits) and luhn(digits))


@dataclass(frozen=True, slots=True)
class _Id:
    """One national id: how it is written, what checks it, and the word it needs near it where nothing else tells."""

    kind: str
    written: re.Pattern[str]
    check: Callable[[str], bool] = lambda _: True
    word: str = ""


def _weighed(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _cpf(text: str) -> bool:
    digits = _digits(text)
    first = _weighed(digits, tuple(range(10, 1, -1))) * 10 % 11 % 10
    second = _weighed(digits, tuple(range(11, 1, -1))) * 10 % 11 % 10
    return len(set(digits)) > 1 and digits[9:] == f"{first}{second}"


def _chinese(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return _is_day(text[6:14]) and text[-1].upper() == "10X98765432"[_weighed(text, weights) % 11]


def _is_day(digits: str) -> bool:
    try:
        date(int(digits[:4]), int(digits[4:6]), int(digits[6:8]))
    except ValueError:
        return False
    return 1890 <= int(digits[:4]) <= 2100


def _spanish(text: str) -> bool:
    plain = text.upper().replace("-", "")
    number = plain[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]


def _finnish(text: str) -> bool:
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[7:10]) % 31] == text[-1].upper()


def _french(text: str) -> bool:
    digits = re.sub(r"\s", "", text).upper().replace("2A", "19").replace("2B", "18")
    return 97 - int(digits[:13]) % 97 == int(digits[13:])


def _italian(text: str) -> bool:
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    places = [int(c) if c.isdigit() else ord(c) - 65 for c in text.upper()]
    total = sum(odd[place] if index % 2 == 0 else place for index, place in enumerate(places[:15]))
    return total % 26 == places[15]


def _german(text: str) -> bool:
    digits, product = _digits(text), 10
    for digit in digits[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(digits[10])


_IDS = tuple(
    _Id(kind, re.compile(rf"(?<![\w.-])(?:{written})(?![\w-]|\.\d)"), check, word)
    for kind, written, check, word in (
        ("a US social security number", r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}", lambda _: True, ""),
        (
            "a UK national insurance number",
            r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]",
            lambda _: True,
            "",
        ),
        ("a Spanish identity number", r"(?:\d{8}|[XYZ]\d{7})-?[A-HJ-NP-TV-Z]", _spanish, ""),
        ("an Italian tax code", r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", _italian, ""),
        (
            "a French social security number",
            r"[12] ?\d\d ?[01]\d ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d",
            _french,
            "",
        ),
        ("a Finnish identity code", r"[0-3]\d[01]\d\d\d[-+A]\d{3}[0-9A-FHJ-NPR-Y]", _finnish, ""),
        ("a Swedish personal number", r"(?:\d\d)?\d\d[01]\d[0-9]\d[-+]\d{4}", lambda t: luhn(_digits(t)[-10:]), ""),
        ("a Brazilian CPF", r"\d{3}\.\d{3}\.\d{3}-\d\d", _cpf, ""),
        ("a Chinese identity number", r"[1-9]\d{16}[\dXx]", _chinese, ""),
        (
            "a Polish PESEL",
            r"\d{11}",
            lambda t: (10 - _weighed(t, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10 == int(t[10]),
            "pesel",
        ),
        ("a German tax id", r"\d{2} ?\d{3} ?\d{3} ?\d{3}", _german, r"steuer|tax"),
        (
            "a Dutch citizen number",
            r"\d{9}",
            lambda t: (_weighed(t, (9, 8, 7, 6, 5, 4, 3, 2)) - int(t[8])) % 11 == 0,
            r"bsn|burgerservice|sofi",
        ),
        (
            "a Canadian social insurance number",
            r"\d{3}[ -]?\d{3}[ -]?\d{3}",
            lambda t: luhn(_digits(t)),
            r"\bsin\b|insurance",
        ),
        ("an Indian Aadhaar number", r"[2-9]\d{3} ?\d{4} ?\d{4}", lambda _: True, r"aadhaar|uid"),
        (
            "a passport number",
            r"[A-Z]{0,2}\d{6,9}",
            lambda _: True,
            r"passport|reisepass|passeport|pasaporte|passaporto",
        ),
        (
            "a national id number",
            r"\d[\d -]{5,14}\d",
            lambda t: len(set(_digits(t))) > 1,
            r"national id|personal id|social security|ssn|id card",
        ),
    )
)


def _national(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    lower = text.lower()
    for one in _IDS:
        if one.word and not re.search(one.word, lower):
            continue
        for match in one.written.finditer(text):
            near = lower[max(0, match.start() - 48) : match.start()]
            if (not one.word or re.search(one.word, near)) and one.check(match[0]):
                yield one.kind, match
