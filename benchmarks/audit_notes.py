"""Made-up memories in eight languages, each labelled with what an audit should find in it.

The words and shapes here are this file's own: nothing of the rules is imported, so that a word that is in both was
thought of twice.
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ipy_memory.model import Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

_THINGS = [
    "checkout",
    "ledger",
    "search",
    "mailer",
    "uploader",
    "catalog",
    "inventory",
    "scheduler",
    "gateway",
    "reporting",
    "billing",
    "profile",
]
_PEOPLE = ["Marta", "Oskar", "Priya", "Tomas", "Ingrid", "Kenji", "Lucia", "Bram", "Noor", "Silvia", "Pavel", "Anneke"]
_PLACES = ["Lisbon", "Oslo", "Turin", "Lyon", "Gdansk", "Utrecht", "Porto", "Graz", "Malaga", "Ghent"]
_TOOLS = ["redis", "kafka", "postgres", "nginx", "grafana", "terraform", "ansible", "celery", "rabbitmq", "vault"]

# Language: what is said of a thing and a number; of a thing and the user; of two tools; a routine in two clauses.
_ORDINARY = {
    "en": (
        "The {thing} team shipped build {n} with help from {person}",
        "{person} reviewed ticket {n} about the {thing} page",
        "The {thing} service reads from {tool} and logs to {tool2} as of ticket {n}",
        "We tried {tool} for the {thing} reports in {place} on 2026-{m:02d}-{d:02d}",
    ),
    "de": (
        "{person} hat Ticket {n} zum Thema {thing} geschlossen",
        "Der Dienst {thing} liest aus {tool} und schreibt nach {tool2}, siehe Ticket {n}",
        "Am 2026-{m:02d}-{d:02d} ging Version {n} von {thing} in {place} live",
    ),
    "fr": (
        "{person} a relu le ticket {n} sur la page {thing}",
        "Le service {thing} utilise {tool} et {tool2} depuis la version {n}",
        "Le 2026-{m:02d}-{d:02d} nous avons essay\u00e9 {tool} pour {thing} \u00e0 {place}",
    ),
    "es": (
        "{person} cerr\u00f3 la incidencia {n} de {thing}",
        "El servicio {thing} depende de {tool} y escribe en {tool2}, nota {n}",
        "El 2026-{m:02d}-{d:02d} probamos {tool} para {thing} en {place}",
    ),
    "it": (
        "{person} ha chiuso il ticket {n} su {thing}",
        "Il servizio {thing} legge da {tool} e scrive su {tool2} nella build {n}",
    ),
    "pt": (
        "{person} fechou o chamado {n} sobre {thing}",
        "O servi\u00e7o {thing} depende de {tool} e grava em {tool2} na vers\u00e3o {n}",
    ),
    "nl": (
        "{person} sloot ticket {n} over {thing}",
        "De dienst {thing} leest uit {tool} en schrijft naar {tool2} in build {n}",
    ),
    "zh": (
        "{person}\u5173\u95ed\u4e86\u5173\u4e8e{thing}\u7684\u5de5\u5355{n}",
        "{thing}\u670d\u52a1\u4ece{tool}\u8bfb\u53d6\u6570\u636e\uff0c\u7f16\u53f7{n}",
    ),
}

# A text, and another that says the same.
_SAME = (
    (
        "Nightly jobs for {thing} clean the temporary folders of {place}",
        "the nightly job for {thing} cleans the temporary folder of {place}.",
    ),
    ("If the {thing} pipeline breaks, call {person} first", "Call {person} first if the {thing} pipeline breaks"),
    (
        "Before each release of {thing} {person} checks the licences",
        "Before each release of {thing}, {person} checks the licence!",
    ),
    ("Die {thing}-Berichte gehen freitags an {person}", "die {thing} berichte gehen freitags an {person}."),
    ("Wenn {thing} ausf\u00e4llt, ruft man {person} an", "Man ruft {person} an, wenn {thing} ausf\u00e4llt"),
    (
        "Les sauvegardes de {thing} sont gard\u00e9es \u00e0 {place}",
        "la sauvegarde de {thing} est gard\u00e9e \u00e0 {place}",
    ),
    ("Los informes de {thing} llegan cada lunes a {person}", "informes de {thing} llegan cada lunes a {person}!"),
    ("I registri di {thing} restano a {place} per mesi", "registri di {thing} restano a {place} per mesi."),
    ("Os relat\u00f3rios de {thing} chegam cedo a {person}", "relat\u00f3rios de {thing} chegam cedo a {person}"),
    ("De rapporten van {thing} gaan naar {person}", "rapporten van {thing} gaan naar {person}."),
    (
        "{thing}\u7684\u5907\u4efd\u6bcf\u665a\u8fd0\u884c\uff0c{person}\u8d1f\u8d23\u68c0\u67e5",
        "{person}\u8d1f\u8d23\u68c0\u67e5\uff0c{thing}\u7684\u5907\u4efd\u6bcf\u665a\u8fd0\u884c\u3002",
    ),
)

# A text, and a later one that cannot hold beside it.
_OPPOSED = (
    ("The {thing} service listens on port {n}", "The {thing} service listens on port {n2}"),
    ("{person} is the owner of {thing}", "The owner of {thing} is {person2}"),
    ("The size limit of {thing} uploads is {d} MB", "The size limit of {thing} uploads is {d2} MB"),
    ("{thing} deployments need approval from {person}", "{thing} deployments do not need approval from {person}"),
    ("We deploy {thing} with {tool}", "We deploy {thing} with {tool2}, not {tool}"),
    ("The {thing} metrics are kept in {tool}", "We moved the {thing} metrics from {tool} to {tool2}"),
    ("The {thing} sync starts at 0{h}:15", "The {thing} sync starts at 0{h2}:45"),
    ("Dark mode of {thing} is enabled for guests", "Dark mode of {thing} is disabled for guests"),
    ("Der Port von {thing} ist {n}", "Der Port von {thing} ist jetzt {n2}"),
    ("F\u00fcr {thing} ist {person} verantwortlich", "F\u00fcr {thing} ist {person2} verantwortlich"),
    ("Der Zugriff auf {thing} ist erlaubt", "Der Zugriff auf {thing} ist nicht erlaubt"),
    ("La version de {thing} est {d}.{h}", "La version de {thing} est {d2}.{h2}"),
    ("Le cache de {thing} est activ\u00e9", "Le cache de {thing} n'est pas activ\u00e9"),
    ("El destino de {thing} es {place}", "El destino de {thing} es ahora {place2}"),
    ("La porta di {thing} \u00e8 {n}", "La porta di {thing} \u00e8 {n2}"),
    ("O respons\u00e1vel por {thing} \u00e9 {person}", "O respons\u00e1vel por {thing} \u00e9 {person2}"),
    ("De poort van {thing} is {n}", "De poort van {thing} is {n2}"),
    ("{thing}\u7684\u7aef\u53e3\u662f{n}", "{thing}\u7684\u7aef\u53e3\u662f{n2}"),
)

_PERSONAL = (
    "Reach {person} about {thing} at {person}.{n}@{place}mail.org",
    "Call {person} about order {n} at +47 412 {n4} {d2}",
    "Refund {n} went to card 4539 1488 0343 6467 of {person}",
    "{person} paid invoice {n} from DE89 3704 0044 0532 0130 00",
)


@dataclass
class Notes:
    """Memories, and what is true of them: ids by kind, and pairs of ids by kind."""

    memories: list[Memory] = field(default_factory=list)
    held: dict[str, set[str]] = field(default_factory=lambda: {"secrets": set(), "pii": set()})
    pairs: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: {"duplicates": set(), "conflicts": set()})


def make(count: int, seed: int = 7) -> Notes:
    """Return so many memories: nine of ten are ordinary, the others hold each kind in equal parts."""
    rng = random.Random(seed)
    notes = Notes()
    serial = 0
    seen: set[str] = set()

    def fresh(texts: Sequence[str], serial: int) -> str:
        """Return an ordinary text that is not there yet."""
        while (text := rng.choice(texts).format(**_filled(rng, serial))) in seen:
            serial += 1
        seen.add(text)
        return text

    def add(text: str) -> str:
        day = 1 + len(notes.memories) * 300 // max(1, count)
        stamp = f"2025-{1 + day // 28:02d}-{1 + day % 28:02d}T08:00:00.{len(notes.memories) % 1000:03d}Z"
        one = Memory(f"n{len(notes.memories)}", "made", "working", text, timestamp=stamp, state="live")
        notes.memories.append(one)
        return one.id

    while len(notes.memories) < count:
        serial += 1
        for _ in range(36):
            language = rng.choice(list(_ORDINARY))
            add(fresh(_ORDINARY[language], serial))
        notes.held["secrets"].add(add(_secret(rng).join(rng.choice((("For staging: ", ""), ("", " (from ops)"))))))
        notes.held["pii"].add(add(fresh(_PERSONAL, serial)))
        for kind, texts in (("duplicates", _SAME), ("conflicts", _OPPOSED)):
            filled = _filled(rng, serial) | {"thing": f"{rng.choice(_THINGS)}{serial}"}
            first, second = (text.format(**filled) for text in rng.choice(texts))
            notes.pairs[kind].add((add(first), add(second)))
    return notes


def _filled(rng: random.Random, serial: int) -> dict[str, object]:
    """Return what stands in the gaps; two of one sort differ."""
    person, person2 = rng.sample(_PEOPLE, 2)
    place, place2 = rng.sample(_PLACES, 2)
    tool, tool2 = rng.sample(_TOOLS, 2)
    h, h2 = rng.sample(range(1, 9), 2)
    n = 1000 + serial * 7
    return {
        "thing": rng.choice(_THINGS), "person": person, "person2": person2, "place": place, "place2": place2,
        "tool": tool, "tool2": tool2, "n": n, "n2": n + rng.randint(1, 900), "n4": rng.randint(10, 99),
        "m": rng.randint(1, 12), "d": 10 + h, "d2": 30 + h2, "h": h, "h2": h2,
    }  # fmt: skip


def _secret(rng: random.Random) -> str:
    """Return a random credential of a random shape."""
    every, low, hexed = string.ascii_letters + string.digits, string.ascii_lowercase, "0123456789abcdef"

    def some(count: int, of: str = every) -> str:
        return "".join(rng.choice(of) for _ in range(count - 2)) + rng.choice(low) + rng.choice(string.digits)

    return rng.choice(
        (
            f"AKIA{some(16).upper()}",
            f"ghp_{some(36)}",
            f"glpat-{some(20)}",
            f"sk-proj-{some(40)}",
            f"sk_live_{some(24)}",
            f"xoxb-{some(12, string.digits)}-{some(24)}",
            f"AIza{some(35)}",
            f"npm_{some(36)}",
            f"hf_{some(34)}",
            f"SG.{some(22)}.{some(43)}",
            f"password = {some(10)}",
            f"DB_PASSWORD={some(14)}",
            f"api_key: {some(32, hexed)}",
            f"client_secret = '{some(24)}'",
            f"postgres://app:{some(12)}@db.internal:5432/main",
            f"https://ci:{some(16)}@git.internal/repo",
            f"-----BEGIN RSA PRIVATE KEY-----\n{some(64)}\n-----END RSA PRIVATE KEY-----",
            f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{some(20)}.{some(43)}",
            f"Authorization: Bearer {some(32)}",
            f"Authorization: Basic {some(24)}==",
        )
    )
