"""Which files hold settings for a folder, in which order, and whose they are; and what a project's files may say.

The agent reads a project's files as if the user had written them. Here what they say of guarded settings counts only in
a folder that the user trusts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ipy_memory.errors import MemoryToolkitError
from ipy_memory.paths import exists, typed_path
from ipy_memory.settings.table import SETTINGS, Layer
from ipy_memory.settings.trust import Guarded, Trusted, add_trusted, digest, real_folder, trusted_folders
from ipy_memory.settings.yaml_file import File, read_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
