"""Which folders the user trusts to decide where memories go: a list of the user's own, outside of every project.

A folder is named by its real path and trusted for what its files say of guarded settings, as one hash over them. Other
changes to those files do not matter; a changed guarded setting ends the trust until the user gives it again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ipy_memory import own_files
from ipy_memory.errors import MemoryToolkitError
from ipy_memory.jscompat.strings import json_text
from ipy_memory.paths import exists, typed_path
from ipy_memory.settings.table import SETTINGS, Layer
from ipy_memory.settings.yaml_file import File, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ipy_memory.settings.table import Value

NAME = "trust.json"
_LIMIT = 1 << 20
_FORM = 1


class Guarded(NamedTuple):
    """A guarded setting as one of a folder's files gives it; the file by its path within the folder."""

    file: str
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Trusted:
    """A folder that the user trusts.

    Attributes
    ----------
    folder
        Its real path.
    digest
        The hash over its guarded settings at that time.
    since
        When it was trusted, as a time stamp.
    settings
        The names of those settings.
    """

    folder: str
    digest: str
    since: str
    settings: tuple[str, ...]


def real_folder(folder: str | os.PathLike[str]) -> str:
    """Return the path by which a folder is trusted: links lead to what they stand for."""
    return os.path.realpath(folder)


def digest(guarded: Sequence[Guarded]) -> str:
    """Return the hash over guarded settings; their order in the files, and what stands around them, does not count."""
    return hashlib.sha256(json_text(sorted(json_text(list(each)) for each in guarded)).encode()).hexdigest()


def trusted_folders(agent_dir: str | os.PathLike[str]) -> dict[str, Trusted]:
    """Return the trusted folders by their real path.

    Raises
    ------
    MemoryToolkitError
        The list cannot be read: then no folder is trusted.
    """
    path = own_files.state_path(os.fspath(agent_dir), NAME)
    try:
        data = _content(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, error.strerror or "unknown reason") from error
    try:
        found = json.loads(data)
        if found["version"] != _FORM:
            raise ValueError(_FORM)
        return {folder: _entry(folder, entry) for folder, entry in found["folders"].items()}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise _unreadable(path, "it is not a list of folders that this release knows") from error


def add_trusted(agent_dir: str | os.PathLike[str], trusted: Trusted) -> None:
    """Add a folder to the list, in place of what the list says of it.

    Raises
    ------
    MemoryToolkitError
        The list cannot be read or written; it stays as it was.
    """
    with _changed(agent_dir) as folders:
        folders[trusted.folder] = trusted


def remove_trusted(agent_dir: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Take a folder off the list; return whether it was on it.

    A folder that is gone is still found by the path under which it was listed.

    Raises
    ------
    MemoryToolkitError
        The list cannot be read or written; it stays as it was.
    """
    names = {real_folder(folder), os.fspath(folder)}
    if names.isdisjoint(trusted_folders(agent_dir)):
        return False
    with _changed(agent_dir) as folders:
        removed = [folders.pop(name, None) for name in names]
        return any(removed)


@contextmanager
def _changed(agent_dir: str | os.PathLike[str]) -> Iterator[dict[str, Trusted]]:
    """Let the list be changed and write it, one process at a time."""
    path = own_files.state_path(os.fspath(agent_dir), NAME)
    own_files.make_folder(path.parent)
    with own_files.locked(path.parent):
        folders = trusted_folders(agent_dir)
        yield folders
        entries = {folder: asdict(entry) for folder, entry in sorted(folders.items())}
        for entry in entries.values():
            del entry["folder"]
        own_files.replace(path, json.dumps({"version": _FORM, "folders": entries}, indent=1).encode())


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise OSError(0, "it is larger than 1 MiB")
    return data


def _entry(folder: str, entry: Mapping[str, Any]) -> Trusted:
    texts = [entry["digest"], entry["since"], *entry["settings"]]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(folder)
    return Trusted(folder, texts[0], texts[1], tuple(texts[2:]))


def _unreadable(path: Path, reason: str) -> MemoryToolkitError:
    return MemoryToolkitError(
        f"The list of trusted folders cannot be read: {reason}.",
        where=str(path),
        hint="no folder is trusted until it is repaired or removed",
    )


OWN_FILES = (("config.yml", "yaml"), ("config.yaml", "yaml"), ("settings.json", "jsonc"))
"""The user's own files in the agent's folder: the first that is there counts alone."""

_OWN: tuple[File, ...] = (File(Path(".omp/settings.json"), "json"), File(Path(".omp/config.yml")))
_SHARED: tuple[File, ...] = (
    File(Path(".claude/settings.json"), "json"),
    File(Path(".gemini/settings.json"), "json"),
    File(Path("opencode.json"), "jsonc"),
    File(Path("opencode.jsonc"), "jsonc"),
    File(Path(".opencode/opencode.json"), "jsonc"),
    File(Path(".opencode/opencode.jsonc"), "jsonc"),
    File(Path(".cursor/settings.json"), "json"),
)
PROJECT_FILES = (*_OWN, *(replace(file, shared=True) for file in _SHARED))
"""A project's files within its folder, those that win last: of a folder above, the agent reads none."""

OVERLAYS = "PI_CONFIG_FILES"
"""The variable that names further files, which win over a project's."""

State = Literal["nothing", "trusted", "untrusted", "changed"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a folder stands: whether what its files say of guarded settings counts.

    Attributes
    ----------
    folder
        Its real path.
    state
        ``nothing``: its files set nothing guarded. ``changed``: it was trusted, but what they set is not the same now.
    guarded
        What they set.
    since
        When it was trusted; empty where it never was, or where only this session trusts it.
    """

    folder: str = ""
    state: State = "nothing"
    guarded: tuple[Guarded, ...] = ()
    since: str = ""

    @property
    def counts(self) -> bool:
        """Whether guarded settings of the folder's files are used."""
        return self.state in {"nothing", "trusted"}

    def as_trusted(self, since: str) -> Trusted:
        """Return the entry that trusts the folder for what its files set now."""
        names = dict.fromkeys(each.name for each in self.guarded)
        return Trusted(self.folder, digest(self.guarded), since, tuple(names))


@dataclass(frozen=True, slots=True)
class Sources:
    """What every settings file of a folder gives, in the order of precedence, and how the folder stands."""

    layers: tuple[Layer, ...]
    standing: Standing

    @property
    def in_force(self) -> tuple[Layer, ...]:
        """The layers without what does not count."""
        if self.standing.counts:
            return self.layers
        return tuple(
            {name: one for name, one in layer.items() if not (one.project and SETTINGS[name].guards(one.value))}
            for layer in self.layers
        )


def read_sources(
    agent_dir: str | Path, cwd: str | Path, env: Mapping[str, str], warnings: list[str], *, trust: bool | None = None
) -> Sources:
    """Read the settings files of a folder.

    Parameters
    ----------
    agent_dir, cwd, env
        As for :func:`ipy_memory.settings.resolve.load_settings`.
    warnings
        Receives what was passed over.
    trust
        Whether the folder is trusted; by default what the user's list of folders says of this content.
    """
    folder = real_folder(cwd)
    entry = _listed(agent_dir, folder, warnings)
    layers: list[Layer] = []
    guarded: list[Guarded] = []
    for file in (*_own_files(agent_dir), *_project_files(agent_dir, cwd), *_overlays(cwd, folder, env, warnings)):
        if file.project and not _within(folder, file.path) and not (trust if trust is not None else entry):
            if exists(file.path):
                warnings.append(f"{file.path} leads out of its project; it is not read unless the folder is trusted")
            continue
        layer = read_file(file, warnings)
        if layer is None:
            continue
        layers.append(layer)
        if file.project:
            name = os.path.relpath(file.path, cwd)
            given = {key: one.value for key, one in layer.items() if SETTINGS[key].guards(one.value)}
            guarded += [Guarded(name, key, value) for key, value in given.items()]
    return Sources(tuple(layers), _standing(folder, guarded, entry, trust))


def trust_folder(agent_dir: str | Path, folder: str | Path, env: Mapping[str, str], since: str) -> Standing:
    """Trust a folder for what its files say now, and return how it stands; nothing is written where nothing is guarded.

    Parameters
    ----------
    agent_dir, env
        As for :func:`ipy_memory.settings.resolve.load_settings`.
    folder
        The folder.
    since
        The time stamp to note.

    Raises
    ------
    MemoryToolkitError
        The list of trusted folders cannot be read or written.
    """
    standing = read_sources(agent_dir, folder, env, [], trust=True).standing
    if standing.guarded:
        add_trusted(agent_dir, standing.as_trusted(since))
    return replace(standing, since=since)


def _listed(agent_dir: str | Path, folder: str, warnings: list[str]) -> Trusted | None:
    try:
        return trusted_folders(agent_dir).get(folder)
    except MemoryToolkitError as error:
        warnings.append(error.one_line().removeprefix(f"{type(error).__name__}: "))
        return None


def _standing(folder: str, guarded: Sequence[Guarded], entry: Trusted | None, trust: bool | None) -> Standing:
    state: State = "nothing"
    if guarded and trust is not None:
        state = "trusted" if trust else "untrusted"
    elif guarded and entry is None:
        state = "untrusted"
    elif guarded and entry is not None:
        state = "trusted" if entry.digest == digest(guarded) else "changed"
    return Standing(folder, state, tuple(guarded), entry.since if entry and trust is None else "")


def _own_files(agent_dir: str | Path) -> Sequence[File]:
    files = [File(Path(agent_dir, name), "yaml" if form == "yaml" else "jsonc") for name, form in OWN_FILES]
    return [file for file in files if exists(file.path)][:1]


def _project_files(agent_dir: str | Path, cwd: str | Path) -> Sequence[File]:
    files = [replace(file, path=Path(cwd, file.path), project=True) for file in PROJECT_FILES]
    own = {os.path.realpath(Path(agent_dir, name)) for name, _ in OWN_FILES}
    return [file for file in files if os.path.realpath(file.path) not in own]


def _overlays(cwd: str | Path, folder: str, env: Mapping[str, str], warnings: list[str]) -> Sequence[File]:
    """Return the files that the environment names; one that lies in the project is the project's."""
    named = [name for name in env.get(OVERLAYS, "").split(os.pathsep) if name]
    files = [File(Path(cwd, typed_path(name, env) if name.startswith("~") else name)) for name in named]
    warnings += [
        f"{OVERLAYS} names {file.path}, which is not there; the agent does not start without it"
        for file in files
        if not exists(file.path)
    ]
    return [replace(file, project=_within(folder, file.path)) for file in files]


def _within(folder: str, path: Path) -> bool:
    return os.path.commonpath([folder, os.path.realpath(path)]) == folder
