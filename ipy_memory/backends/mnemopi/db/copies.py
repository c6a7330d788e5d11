"""Copies of banks: made before a change, in a folder of ours, whole or not at all.

A copy is first written to an unfinished file whose name nobody can foresee, without any journal beside it, and gets
its own name when all of it is on the disk. A process that is killed meanwhile leaves the unfinished file, which the
next session removes. Release 0.1 made its copies beside the bank; they are still listed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.db.connection import Connection
from ipy_memory.errors import BankError, MemoryToolkitError
from ipy_memory.jscompat.dates import iso
from ipy_memory.own_files import create, make_folder
from ipy_memory.scoping.modes import name_by_folder, sanitise

if TYPE_CHECKING:
    from pathlib import Path

    from ipy_memory.backends.mnemopi.db.bank import Bank

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


ENDING = ".backup"
"""How the name of a copy ends."""

_UNFINISHED = ".part"
_ABANDONED_SECONDS = 3600
_PAGES_AT_ONCE = 1000
_FORMAT_VERSIONS = 18
"""Where the header of a database says whether a write-ahead log belongs to it: 1, 1 says that none does."""
_MOST = 1000
_TIME = re.compile(rf"\.(\d{{4}}-\d{{2}}-\d{{2}}T\d{{6}})Z(?:-(\d+))?{re.escape(ENDING)}\Z")


def copy_bank(bank: Bank, folder: Path) -> Path:
    """Copy the whole bank, as of now, into a new file (0600) of a folder of ours; return that file.

    Parameters
    ----------
    bank
        An open bank that is in no transaction of ours.
    folder
        Where copies are kept; made if it is not there.

    Raises
    ------
    BankError
        There is no copy; nothing was left behind.
    """
    try:
        make_folder(folder)
        partial = folder / f".{os.urandom(8).hex()}.{_key(bank.path, folder)}{ENDING}{_UNFINISHED}"
        descriptor = create(partial)
    except MemoryToolkitError as error:
        raise BankError(f"The bank was not copied: {error.message}", where=error.where, hint=error.hint) from error
    try:
        with closing(os.fdopen(descriptor, "r+b", buffering=0)) as file:
            if fcntl is not None:  # as long as it is held, no other session takes the file for abandoned
                fcntl.flock(file, fcntl.LOCK_EX)
            with bank.snapshot() as connection, closing(_target(partial)) as copy:
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # begins the snapshot
                connection.backup(copy, pages=_PAGES_AT_ONCE, progress=lambda *_: bank.check_cancelled())
            os.pwrite(file.fileno(), b"\1\1", _FORMAT_VERSIONS)
            os.fsync(file.fileno())
            return _named(partial, folder / _stem(bank, folder))
    except BankError as error:
        raise type(error)(
            f"The bank was not copied: {error.message}", where=f"{bank.where}, copy in {folder}", hint=error.hint
        ) from error
    except OSError as error:
        raise BankError(
            f"The bank was not copied: {error.strerror}.",
            where=str(folder),
            hint="check the room on the disk and the permissions of the folder",
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def _target(partial: Path) -> sqlite3.Connection:
    """Connect to an unfinished copy; nothing is made beside it."""
    copy = sqlite3.connect(partial, isolation_level=None, factory=Connection)
    copy.execute("PRAGMA journal_mode = OFF")
    copy.execute("PRAGMA synchronous = OFF")
    return copy


def copies_of(path: Path, folder: Path) -> list[Path]:
    """Return every copy of a bank file, the oldest first: those in our folder, and those beside the bank."""
    ours = _matching(folder, f"*.{_key(path, folder)}.*{ENDING}")
    beside = _matching(path.parent, f"{escape(path.name)}.*{ENDING}")
    return sorted((*beside, *ours), key=_moment)


def unfinished_of(path: Path, folder: Path) -> list[Path]:
    """Return what was left of a bank's copies by processes that were killed, or belongs to one being made."""
    ours = _matching(folder, f".*.{_key(path, folder)}{ENDING}{_UNFINISHED}")
    beside = _matching(path.parent, f".{escape(path.name)}.*{ENDING}{_UNFINISHED}")
    return sorted((*ours, *beside))


def sweep(folder: Path, path: Path | None = None) -> list[Path]:
    """Remove unfinished copies that nobody is writing any more; return which.

    Parameters
    ----------
    folder
        Where copies are kept.
    path
        A bank beside which release 0.1 may have left unfinished copies.
    """
    found = _matching(folder, f".*{ENDING}{_UNFINISHED}")
    if path is not None:
        found += _matching(path.parent, f".{escape(path.name)}.*{ENDING}{_UNFINISHED}")
    return [partial for partial in found if _removed(partial, ours=partial.parent == folder)]


def _matching(folder: Path, pattern: str) -> list[Path]:
    try:
        return list(folder.glob(pattern))
    except OSError:  # a folder that cannot be looked into
        return []


def _removed(partial: Path, *, ours: bool) -> bool:
    """Remove an unfinished copy unless it is being written; a link is removed, never followed."""
    try:
        if ours and fcntl is not None and not partial.is_symlink():
            descriptor = os.open(partial, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            with closing(os.fdopen(descriptor, "r+b", buffering=0)) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                partial.unlink()
        elif ours or time.time() - partial.lstat().st_mtime > _ABANDONED_SECONDS:
            partial.unlink()
        else:
            return False
    except OSError:
        return False
    return True


def _named(partial: Path, stem: Path) -> Path:
    """Give a finished copy its own name, which nothing has yet."""
    for number in range(1, _MOST):
        target = stem.with_name(f"{stem.name}{'' if number == 1 else f'-{number}'}{ENDING}")
        try:
            os.link(partial, target)
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            if os.path.lexists(target):
                continue
            partial.rename(target)
        _sync(target.parent)
        return target
    raise BankError(
        "There are too many copies of this moment already.",
        where=str(stem.parent),
        hint="delete copies that are not needed, or try again in a second",
    )


def _sync(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _stem(bank: Bank, folder: Path) -> str:
    stamp = iso(bank.clock.now_ms())[:19].replace(":", "")
    label = name_by_folder(bank.path) or bank.name
    return f"{sanitise(label) or 'bank'}.{_key(bank.path, folder)}.{stamp}Z"


def _key(path: Path, folder: Path) -> str:
    """Return what tells the copies of one bank file from those of others: a hash of where the file is."""
    place = os.path.relpath(os.path.realpath(path), os.path.realpath(folder.parent.parent))
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:12]


def _moment(copy: Path) -> tuple[str, int, str]:
    """Return the order of copies: by their time, then by their number within one second."""
    found = _TIME.search(copy.name)
    return (found[1], int(found[2] or 1), copy.name) if found else ("", 0, copy.name)


MOUNTS = Path("/proc/self/mountinfo")
"""Where Linux says what is mounted; elsewhere the type of a file system is not known."""

_NETWORK = re.compile(r"nfs4?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|vboxsf|fuse\.(?:sshfs|s3fs|rclone|gcsfuse)")
_SYNCED = re.compile(r"dropbox|onedrive\b.*|google ?drive|my drive|icloud.*|mobile documents|nextcloud|owncloud", re.I)
_MARKERS = (".stfolder", ".dropbox")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def warnings_of(bank: Path, mounts: Path = MOUNTS) -> list[str]:
    """Return what threatens a bank in the place where it lies.

    Parameters
    ----------
    bank
        The bank's file; it need not be there.
    mounts
        The list of mounted file systems.
    """
    found = []
    folder = Path(os.path.realpath(bank.parent))
    if (kind := file_system(folder, mounts)) and _NETWORK.fullmatch(kind):
        found.append(
            f"The bank lies on a network file system ({kind}): SQLite's locks may not work there, and two machines that"
            " write can damage it. Move it to a local disk."
        )
    if (root := synced_folder(folder)) is not None:
        found.append(
            f"The bank lies in a synced folder ({root.name}): what is synced while it is written can damage or undo it."
            " Move it to a folder that is not synced."
        )
    if copies := conflict_copies(bank):
        names = ", ".join(copy.name for copy in copies)
        found.append(f"Beside the bank lie conflict copies, whose memories are not read: {names}.")
    return found


def file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the type of the file system that holds a folder; ``None`` where it is not known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    best: tuple[int, str] | None = None
    for line in lines:
        before, dash, after = line.partition(" - ")
        fields = before.split()
        if not dash or len(fields) < 5:
            continue
        point = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[4])
        # Of two mounts at one place the later one is seen.
        if folder.is_relative_to(point) and (best is None or len(point) >= best[0]):
            best = len(point), after.split()[0]
    return best[1] if best else None


def synced_folder(folder: Path) -> Path | None:
    """Return the root of the synced folder around a folder, known by its name or by the service's own mark."""
    for parent in (folder, *folder.parents):
        if _SYNCED.fullmatch(parent.name) or any((parent / mark).exists() for mark in _MARKERS):
            return parent
    return None


def conflict_copies(bank: Path) -> list[Path]:
    """Return the files beside a bank that a syncing service made of two versions of it."""
    try:
        names = sorted(entry.name for entry in os.scandir(bank.parent))
    except OSError:
        return []
    stem, suffix = bank.stem.lower(), bank.suffix.lower()
    return [
        bank.with_name(name)
        for name in names
        if name.lower().startswith(stem) and name.lower().endswith(suffix) and "conflict" in name.lower()
    ]
