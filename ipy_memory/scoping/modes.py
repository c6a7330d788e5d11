"""The local engine's bank names: how a directory and a setting become names, and names become files."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.errors import BankNameError
from ipy_memory.jscompat.strings import hash36, trim, units
from ipy_memory.scoping import check_scoping
from ipy_memory.scoping.project import project_label, resolve_path

if TYPE_CHECKING:
    from ipy_memory.settings.resolve import HindsightConfig, MnemopiConfig

DEFAULT_BANK = "default"
BANK_FILE = "mnemopi.db"
_BANKS = "banks"
NAME_LIMIT = 64

_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class BankScope:
    """The banks of a session: the shared one, the one written to, and those read, in order."""

    base_bank: str
    bank: str
    global_bank: str
    retain_bank: str
    recall_banks: tuple[str, ...]


def bank_scope(configured: str | None, cwd: str, scoping: str, *, process_cwd: str | None = None) -> BankScope:
    """Return the banks of a directory under a scoping mode."""
    check_scoping(scoping)
    shared = sanitise(configured) or DEFAULT_BANK
    if scoping == "global":
        return BankScope(shared, shared, shared, shared, (shared,))
    project = project_bank(configured, cwd, process_cwd=process_cwd)
    recalled = (project, shared) if scoping == "per-project-tagged" and shared != project else (project,)
    return BankScope(shared, project, shared, project, recalled)


def mnemopi_scope(config: MnemopiConfig, cwd: str) -> BankScope:
    """Return the banks of a directory under the settings in force."""
    return bank_scope(config.bank, cwd, config.scoping)


def project_bank(configured: str | None, cwd: str, *, process_cwd: str | None = None) -> str:
    """Return the bank of a directory, named by the absolute path alone."""
    segment = project_segment(resolve_path(cwd, process_cwd))
    base = sanitise(configured)
    return _limit(f"{base}-{segment}") if base else segment


def project_segment(root: str) -> str:
    """Return ``<sanitised last part>-<hash of the whole path>``."""
    name = sanitise(posixpath.basename(root.rstrip("/"))) or DEFAULT_BANK
    return _limit(f"{name}-{hash36(root)}")


def sanitise(value: str | None) -> str | None:
    """Return a text as a bank name of at most 64 characters, or ``None`` where nothing is left."""
    name = _OUTSIDE.sub("-", trim(value or "")).strip("-")
    return _limit(name) if name else None


def check_bank_name(name: str) -> str:
    """Return a name that a bank can have, or raise :class:`BankNameError`."""
    if units(name) > NAME_LIMIT:
        raise BankNameError(f"Bank name '{name}' exceeds {NAME_LIMIT} characters", hint="choose a shorter name")
    if not name or _OUTSIDE.search(name):
        raise BankNameError(
            f"Invalid bank name '{name}'. Use alphanumeric, hyphens, underscores only.",
            hint="%memory banks lists the names there are",
        )
    return name


def bank_path(db_path: str | Path, name: str, shared: str = DEFAULT_BANK, *, follow: bool = False) -> Path:
    """Return the file of a bank; nothing is made and nothing is opened.

    The shared bank is the configured file itself, ``default`` (or no name) the file ``mnemopi.db`` beside it,
    any other bank lies in its own folder under ``banks``. A name that would lead elsewhere is refused, also one that
    does so through a symbolic link, unless links are to be followed.
    """
    configured = Path(db_path)
    if name == shared:
        return configured
    if name in {"", DEFAULT_BANK}:
        return configured.parent / BANK_FILE
    banks = banks_folder(db_path)
    path = banks / check_bank_name(name) / BANK_FILE
    if not follow and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(banks)):
        raise BankNameError(
            f"Bank '{name}' leads outside the banks folder",
            where=str(path),
            hint="it is a symbolic link; set mnemopi.dbPath to the file it points to",
        )
    return path


def banks_folder(db_path: str | Path) -> Path:
    """Return the folder that holds all banks but the shared one."""
    return Path(db_path).parent / _BANKS


def banks_within(folder: Path) -> list[str]:
    """Return the names of the folders in a banks folder that hold a bank file, in order; links are left out."""
    return sorted(path.parent.name for path in folder.glob(f"*/{BANK_FILE}") if not path.parent.is_symlink())


def name_by_folder(path: Path) -> str | None:
    """Return the name of the folder that a bank file lies in, if that stands in a banks folder."""
    return path.parent.name if path.parent.parent.name == _BANKS else None


def _limit(name: str) -> str:
    if len(name) <= NAME_LIMIT:
        return name
    tail = hash36(name)
    head = name[: max(1, NAME_LIMIT - 1 - len(tail))].rstrip("-")
    return f"{head or 'bank'}-{tail}"


DEFAULT_HINDSIGHT_BANK = "omp"


@dataclass(frozen=True, slots=True)
class HindsightScope:
    """A bank and the tags in force; ``None`` where the mode has no tags."""

    bank_id: str
    retain_tags: tuple[str, ...] | None = None
    recall_tags: tuple[str, ...] | None = None
    tags_match: str | None = None


def hindsight_scope(config: HindsightConfig, cwd: str, *, process_cwd: str | None = None) -> HindsightScope:
    """Return the bank and tags of a directory."""
    scoping = check_scoping(config.scoping)
    base = "-".join(filter(None, (trim(config.bank_id_prefix), trim(config.bank_id or "") or DEFAULT_HINDSIGHT_BANK)))
    if scoping == "global":
        return HindsightScope(base)
    label = project_label(cwd, process_cwd)
    if scoping == "per-project":
        return HindsightScope(f"{base}-{label}")
    tags = (f"project:{label}",)
    return HindsightScope(base, retain_tags=tags, recall_tags=tags, tags_match="any")
