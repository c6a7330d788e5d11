"""Which bank files a session asks, writes and edits: its scope's own, rescued ones, and any that the user names."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.admin.stats import shown_path
from ipy_memory.backends.mnemopi.legacy import legacy_banks
from ipy_memory.backends.mnemopi.pool import Target, name_in_file
from ipy_memory.errors import BankNameError, BankNotFoundError
from ipy_memory.paths import exists
from ipy_memory.scoping.modes import BANK_FILE, bank_path, banks_folder, banks_within, name_by_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ipy_memory.backends.mnemopi.legacy import LegacyVerdict
    from ipy_memory.clock import Clock
    from ipy_memory.scoping.modes import BankScope
    from ipy_memory.settings.resolve import MnemopiConfig


class BanksInScope:
    """The bank files that a session's settings and folder lead to; names and places only, no open bank.

    Parameters
    ----------
    config
        The ``mnemopi.*`` settings.
    scope
        The banks written and read.
    clock
        For looking into rescued files.
    cwd
        Of the session: legacy banks are looked for under its name.
    home
        Home folder, shown as ``~``.
    """

    def __init__(self, config: MnemopiConfig, scope: BankScope, *, clock: Clock, cwd: str, home: str) -> None:
        self.config = config
        self.scope = scope
        self.cwd = cwd
        self.home = home
        self._clock = clock
        self._legacy: tuple[LegacyVerdict, ...] | None = None
        self._renamed: Mapping[str, str] | None = None

    @property
    def retain_bank(self) -> str:
        """Name of the bank that is written."""
        return self.scope.retain_bank

    @property
    def legacy(self) -> tuple[LegacyVerdict, ...]:
        """The verdict on every legacy candidate, looked at once a session; none in ``global`` mode."""
        if self._legacy is None:
            is_global = self.config.scoping == "global"
            found = [] if is_global else legacy_banks(self.config.db_path, self.cwd, self.scope.recall_banks)
            self._legacy = tuple(found)
        return self._legacy

    @property
    def renamed(self) -> Mapping[str, str]:
        """The rescued banks whose rows bear another name, with that name; looked at once a session."""
        if self._renamed is None:
            written = {v.name: name_in_file(v.path, self._clock) for v in self.legacy if v.rescued}
            self._renamed = {name: other for name, other in written.items() if other != name}
        return self._renamed

    def look_again(self) -> None:
        """Forget what was found beside the session's own banks: the folder or the files are others now."""
        self._legacy = self._renamed = None

    def own_targets(self) -> list[Target]:
        """Return the session's own banks: the retain bank and the scope's recall banks, not the rescued ones."""
        return [self.target(name) for name in dict.fromkeys((self.scope.retain_bank, *self.scope.recall_banks))]

    def recall_targets(self) -> list[Target]:
        """Return the banks that a recall asks, in order: the scope's own, then rescued ones."""
        own = [self.target(name) for name in self.scope.recall_banks]
        return own + [Target(v.name, v.path, rescued=True) for v in self.legacy if v.rescued]

    def edit_targets(self) -> list[Target]:
        """Return the banks in the order in which an id is looked up: none that a recall does not ask."""
        return _each_once([self.target(self.scope.retain_bank), *self.recall_targets()])

    def report_targets(self) -> list[Target]:
        """Return the banks that reports name: the scope's own, the shared one in any case, then rescued ones."""
        return _each_once([*self.own_targets(), self.target(self.scope.global_bank), *self.recall_targets()])

    def target(self, name: str) -> Target:
        """Return the file of one of the scope's banks; as the agent does, a link in its place is followed."""
        return Target(name, bank_path(self.config.db_path, name, self.scope.global_bank, follow=True))

    def named_target(self, name: str) -> Target:
        """Return the file of any bank under the database folder.

        Raises
        ------
        BankNotFoundError
            There is none of this name; the message names those that are near.
        """
        return Target(name, self._bank_file(name))

    def named_rows(self, name: str) -> Target:
        """Return a bank by its name on disk, under the name that its rows bear.

        The two differ in a bank that was copied or renamed by hand.

        Raises
        ------
        BankNotFoundError
            There is none of this name.
        """
        path = self.named_target(name).path
        return Target(name_in_file(path, self._clock) if name_by_folder(path) else name, path)

    def bank_names(self) -> list[str]:
        """Return the names of all banks that have a file under the database folder, in order."""
        names = [self.scope.global_bank] if exists(Path(self.config.db_path)) else []
        with suppress(OSError):
            names += banks_within(banks_folder(self.config.db_path))
        names += [target.name for target in self.own_targets() if exists(target.path)]
        return list(dict.fromkeys(names))

    def _bank_file(self, name: str) -> Path:
        if name == self.scope.global_bank and exists(shared := Path(self.config.db_path)):
            return shared
        own = {target.name: target.path for target in self.own_targets()}
        if name in own and exists(own[name]):
            return own[name]
        # The name as it stands on disk is tried as it is: a folder's name need not be a valid bank name.
        named = banks_folder(self.config.db_path) / name / BANK_FILE
        if named.parent.name == name != ".." and exists(named):
            if named.parent.is_symlink():
                raise BankNameError(
                    f"Bank '{name}' is a link to another folder, which is not followed",
                    where=str(named.parent),
                    hint=f"%memory open {named} reads the file that it leads to",
                )
            return named
        path = bank_path(self.config.db_path, name, self.scope.global_bank)
        if exists(path):
            return path
        known = self.bank_names()
        near = get_close_matches(name, known, n=3) or known[:5]
        raise BankNotFoundError(
            f"There is no bank {name!r}.",
            where=shown_path(banks_folder(self.config.db_path), self.home),
            hint=f"there is {', '.join(near)}" if near else "nothing has been retained yet",
        )


def _each_once(targets: Sequence[Target]) -> list[Target]:
    found: dict[Path, Target] = {}
    for target in targets:
        found.setdefault(target.path, target)
    return list(found.values())
