"""A made-up home with real bank files: for notebooks, documentation and ``ipy-memory demo``.

The banks are written by the product's own retain, with a clock that stands still and ids that count, so that every
run gives the same text. Nothing outside the folder is read or written, and nothing leaves this machine: in place of a
Hindsight server, recorded exchanges with one are played.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipy_memory import process
from ipy_memory.clock import FixedClock, FixedIds, ManualTimers
from ipy_memory.errors import MagicError, MemoryToolkitError
from ipy_memory.replay import Player
from ipy_memory.session import MemorySession, open_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOW = "2026-06-01T12:00:00.000Z"
"""Where the clock stands."""

PROJECT = "/demo/shop"
"""The project's folder. It need not exist: a bank's name follows from the path alone."""

QUERY = "deploy target"
FOLDER_VARIABLE = "IPY_MEMORY_DEMO"
"""Environment variable that names the folder to use instead of a new one."""

SERVER_VARIABLE = "IPY_MEMORY_DEMO_HINDSIGHT"
"""Environment variable with the address of a real Hindsight server to use instead of recorded exchanges."""

_LONG = (
    "Incident review of 12 May: the checkout was down for 40 minutes because the deploy target still pointed at the "
    "old region while the database had moved. "
) + " ".join(
    f"Step {number}: {step}"
    for number, step in enumerate(
        (
            "freeze deploys as soon as checkout errors pass two percent.",
            "compare the deploy target with the region of the database.",
            "roll back to the last release that passed the smoke test.",
            "write down the time line while it is fresh, in the channel and not in private messages.",
            "open a ticket for every manual step that a script could have done.",
        ),
        start=1,
    )
)
_CONFIG = """\
memory:
  backend: mnemopi
mnemopi:
  scoping: per-project-tagged
  noEmbeddings: true
"""


@dataclass(frozen=True, slots=True)
class _Bank:
    """One bank to write: under which settings, in which folder the agent worked, and what it retained when."""

    settings: Mapping[str, Any]
    entries: Sequence[tuple[str, str, str, str | None]]
    file: str | None = None


_SHOP, _BLOG = PROJECT, "/demo/blog"
_BANKS = (
    _Bank(
        {"mnemopi.scoping": "per-project"},
        (
            ("2026-05-04T09:30:00.000Z", _SHOP, "Deploy target of the shop: Hetzner, region fra.", "setup"),
            ("2026-05-12T16:00:00.000Z", _SHOP, _LONG, "incident review"),
            (
                "2026-05-20T08:15:00.000Z",
                _SHOP,
                "The shop uses PostgreSQL 16; migrations run before a deploy.",
                None,
            ),
            ("2026-05-29T14:45:00.000Z", _SHOP, "Invoices are rendered by the worker, never by the web process.", None),
        ),
    ),
    _Bank(
        {"mnemopi.scoping": "global"},
        (
            ("2026-03-02T10:00:00.000Z", _SHOP, "Mira prefers short commit messages in the imperative.", None),
            ("2026-04-18T11:20:00.000Z", _SHOP, "Every deploy is announced in the ops channel first.", "team rules"),
        ),
    ),
    _Bank(
        {"mnemopi.scoping": "global", "mnemopi.bank": "shop-before-move"},
        (
            ("2026-01-15T10:00:00.000Z", _SHOP, "Until March the deploy target of the shop was Heroku.", None),
            ("2026-02-03T13:10:00.000Z", _SHOP, "The Heroku add-on for mail is paid until July.", None),
        ),
        "shop-before-move",
    ),
    _Bank(
        {"mnemopi.scoping": "global", "mnemopi.bank": "two-projects"},
        (
            ("2026-01-20T10:00:00.000Z", _SHOP, "The shop's deploy target is decided by Mira.", None),
            ("2026-01-21T10:00:00.000Z", _BLOG, "The blog's deploy target is a static bucket.", None),
        ),
        "two-projects",
    ),
)


@dataclass(frozen=True, slots=True)
class Demo:
    """A made-up home folder with banks in it, and the address of its Hindsight server if it has one."""

    folder: Path
    server: str | None = None

    @property
    def agent_dir(self) -> Path:
        """The agent's folder in the made-up home."""
        return self.folder / ".omp" / "agent"

    @property
    def database(self) -> Path:
        """The shared bank's file; the other banks are beside it, in ``banks``."""
        return self.agent_dir / "memories" / "mnemopi" / "mnemopi.db"

    def world(self, *, last_id: int = 1000) -> dict[str, Any]:
        """Return clock, ids and environment of the made-up home, as :func:`open_session` takes them.

        With a Hindsight server, its address is in the environment, and timers stand still as the clock does.
        """
        env = {"HOME": str(self.folder)}
        more: dict[str, Any] = {}
        if self.server:
            env["HINDSIGHT_API_URL"] = self.server
            more["timers"] = ManualTimers()
        return {"env": env, "clock": FixedClock(NOW), "ids": FixedIds(last_id), **more}

    def checkout(self, name: str, *, worktree_of: str | None = None) -> str:
        """Make a folder that looks like a git checkout, or like a linked worktree of one; return its path."""
        folder = self.folder / "code" / name
        folder.mkdir(parents=True, exist_ok=True)
        git = folder / ".git"
        if worktree_of is not None:
            git.write_text(f"gitdir: ../{worktree_of}/.git/worktrees/{name}\n", encoding="utf-8")
            git = folder.parent / worktree_of / ".git" / "worktrees" / name
        git.mkdir(parents=True, exist_ok=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        if worktree_of is not None:
            (git / "commondir").write_text("../..\n", encoding="utf-8")
        return str(folder)

    def session(self, *, cwd: str = PROJECT, settings: Mapping[str, Any] | None = None, **more: Any) -> MemorySession:
        """Open a session in the made-up home; ``more`` as for :func:`open_session`."""
        return open_session(cwd=cwd, settings=settings, agent_dir=self.agent_dir, **{**self.world(), **more})


def make(folder: str | os.PathLike[str]) -> Demo:
    """Write the banks into a folder; one that has them already is used as it is.

    Raises
    ------
    MemoryToolkitError
        The folder holds other things.
    """
    demo = Demo(Path(folder).expanduser().absolute())
    if demo.database.exists():
        return demo
    if demo.folder.exists() and any(demo.folder.iterdir()):
        raise MemoryToolkitError(
            "The folder is not empty, and not one of ours.", where=str(demo.folder), hint="name a new one"
        )
    demo.agent_dir.mkdir(parents=True, exist_ok=True)
    (demo.agent_dir / "config.yml").write_text(_CONFIG, encoding="utf-8")
    clock, ids = FixedClock(NOW), FixedIds()
    for bank in _BANKS:
        file = demo.database if bank.file is None else demo.database.parent / "banks" / bank.file / demo.database.name
        for at, cwd, content, context in bank.entries:
            clock.set(at)
            with demo.session(cwd=cwd, settings=bank.settings, database=file, clock=clock, ids=ids) as session:
                session.retain(content, context)
    return demo


class _PassingHome:
    """A new folder that the process which made it removes at its end; a forked child leaves it alone."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="ipy-memory-demo-")
        self._process = os.getpid()
        process.at_exit(self._remove)

    def _remove(self) -> None:
        if self._process == os.getpid():
            shutil.rmtree(self.folder, ignore_errors=True)


_HOMES: list[_PassingHome] = []


def start(*, fresh: bool = False, hindsight: str | None = None) -> Demo:
    """Let the magics of this notebook work in a made-up home, and load them if they are not loaded.

    The home is a new folder that is removed at the end, or the one that ``IPY_MEMORY_DEMO`` names.

    Parameters
    ----------
    fresh
        Always take a new folder: for what would spoil the banks for others.
    hindsight
        Name of the recording that is played as the Hindsight server of a fresh home, unless
        ``IPY_MEMORY_DEMO_HINDSIGHT`` is the address of a real one.
    """
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        raise MagicError("demo.start() works in IPython or a notebook", hint="use demo.make(folder) elsewhere")
    named = os.environ.get(FOLDER_VARIABLE)
    if named and not fresh and hindsight is None:
        demo = make(named)
    else:
        home = _PassingHome()
        _HOMES.append(home)
        demo = make(home.folder)
    if hindsight is not None:
        demo = Demo(demo.folder, os.environ.get(SERVER_VARIABLE) or Player(hindsight).start().url)
    if "MemoryMagics" not in shell.magics_manager.registry:
        shell.run_line_magic("load_ext", "ipy_memory")
    shell.magics_manager.registry["MemoryMagics"].live_in(demo.world(), cwd=PROJECT, agent_dir=str(demo.agent_dir))
    return demo
