"""Memories by their ids over the banks in scope: reading one, the agent's edits, and the user's with their undo."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ipy_memory import text
from ipy_memory.backends.base import Backend, Edit, Edited
from ipy_memory.backends.mnemopi.bank_files import BanksInScope
from ipy_memory.backends.mnemopi.db.bank import Bank
from ipy_memory.backends.mnemopi.db.copies import copy_bank
from ipy_memory.backends.mnemopi.pool import READ, WRITE, OpenBanks, Target, alone
from ipy_memory.backends.mnemopi.recall.single_bank import PREVIEW_UNITS
from ipy_memory.backends.mnemopi.store import edit as editing
from ipy_memory.backends.mnemopi.store.delete import scrub
from ipy_memory.backends.mnemopi.store.memories import find
from ipy_memory.errors import BankError, MemoryNotFoundError
from ipy_memory.model import ToolResult
from ipy_memory.paths import exists

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ipy_memory.model import Memory
    from ipy_memory.scoping.modes import BankScope
    from ipy_memory.settings.resolve import MnemopiConfig


class MemoriesById(BanksInScope, Backend):
    """What is done with a memory whose id is known.

    Banks are opened one by one until one has the memory. One that cannot be opened is passed over, and said in a
    notice. The agent's path never leaves the banks that a recall asks; the user can name another bank.
    """

    def __init__(self, config: MnemopiConfig, scope: BankScope, banks: OpenBanks, *, cwd: str, home: str) -> None:
        super().__init__(config, scope, clock=banks.clock, cwd=cwd, home=home)
        self.banks = banks
        self.backups: dict[Path, Path] = {}
        self.edits: list[tuple[Edited, ...]] = []

    @alone
    def read(self, url: str) -> str:
        """Return what ``memory://<id>`` shows."""
        return editing.read_address(self.in_reach(), url)

    @alone
    def edit(self, edit: Edit) -> ToolResult:
        """Carry out ``memory_edit`` exactly as the tool does."""
        done = editing.edit(self.in_reach(), edit, prepare=self._writable)
        return ToolResult(done.text, done.details)

    @alone
    def memory(self, id: str, bank: str | None = None) -> Memory:  # noqa: A002
        """Return one memory in full, from the first bank in scope that has it, or from one that is named.

        Raises
        ------
        MemoryNotFoundError
            None has it; where a bank out of scope does, the message names that bank.
        """
        try:
            return editing.find_in(self.in_reach(bank), id)
        except MemoryNotFoundError:
            if bank is None:
                self.refuse_elsewhere("show", id)
            raise

    @alone
    def change(self, edit: Edit) -> Edited:
        """Edit with care: no cut preview over a whole text, no text over another's.

        Each bank is copied before its first edit, but not before a purge, which leaves no byte of the text.

        Raises
        ------
        MemoryNotFoundError
            The memory is in a bank out of scope, and ``edit.bank`` does not name it.
        """
        done = editing.edit(
            self.in_reach(edit.bank),
            edit,
            preview_chars=None if edit.force else PREVIEW_UNITS,
            prepare=self._writable if edit.purge else self._writable_with_copy,
        )
        if done.before is None and edit.bank is None:
            self.refuse_elsewhere(edit.op, edit.id)
        if edit.purge and not edit.dry_run and done.before is None:
            # An earlier purge may have been interrupted after its row was gone.
            for one in self.in_reach(edit.bank):
                scrub(self._writable(one))
        if not edit.dry_run and done.status in ("updated", "invalidated"):
            self.edits.append((done,))
        return done

    @alone
    def undo(self, done: Edited, *, force: bool = False) -> bool:
        """Undo an update or an invalidation."""
        there = editing.undo(self._written_to(done), done, force=force)
        if (done,) in self.edits:
            self.edits.remove((done,))
        return there

    def target_of(self, done: Edited) -> Target:
        """Return the bank that an edit wrote."""
        if done.path is not None and done.bank is not None:
            return Target(done.bank, done.path)
        return self.target_named(done.bank or "")

    def target_named(self, name: str) -> Target:
        """Return a bank by the name that frames show: one in scope, or any other of the database folder."""
        known = {target.name: target for target in self.recall_targets()}
        return known.get(name) or self.named_target(name)

    def back_up_once(self, bank: Bank) -> None:
        """Copy a bank, if this session has not done so yet."""
        if bank.path not in self.backups:
            self.backups[bank.path] = copy_bank(bank, self.banks.copies)

    def in_reach(self, bank: str | None = None) -> Iterator[Bank]:
        """Open the banks in which an id is looked up, for reading, each when it is asked for.

        One that is named must be there and readable; of those in scope, one that cannot be read is passed over.

        Raises
        ------
        BankError
            There are banks, and none can be read.
        """
        if bank is not None:
            if (named := self.banks.get(self.named_rows(bank), READ)) is not None:
                yield named
            return
        failed: list[tuple[str, BankError]] = []
        is_any = False
        for target in self.edit_targets():
            try:
                found = self.banks.get(target, READ)
            except BankError as error:
                failed.append((target.name, error))
                continue
            if found is not None:
                is_any = True
                self._pass_over(failed)
                yield found
        if failed and not is_any:
            raise failed[0][1]
        self._pass_over(failed)

    def _pass_over(self, failed: list[tuple[str, BankError]]) -> None:
        while failed:
            name, error = failed.pop(0)
            self.banks.notify("warning", text.bank_passed_over(name, error.message), "Mnemopi")

    def _writable(self, bank: Bank) -> Bank:
        """Return a bank opened for writing."""
        return self.banks.get(Target(bank.name, bank.path), WRITE) or bank

    def _writable_with_copy(self, bank: Bank) -> Bank:
        bank = self._writable(bank)
        self.back_up_once(bank)
        return bank

    def _written_to(self, done: Edited) -> Bank | None:
        target = self.target_of(done)
        return self.banks.get(target, WRITE) if exists(target.path) else None

    def refuse_elsewhere(self, command: str, memory_id: str) -> None:
        """Raise if a bank of the database folder that is out of scope has a memory."""
        if (bank := self._elsewhere(memory_id)) is not None:
            raise MemoryNotFoundError(
                text.out_of_scope(memory_id, bank, self.config.scoping),
                where=f"bank {bank}",
                hint=f"%memory {command} --bank {bank} {memory_id}",
            )

    def _elsewhere(self, memory_id: str) -> str | None:
        reach = {target.path for target in self.edit_targets()}
        for name in self.bank_names():
            with suppress(BankError):
                target = self.named_rows(name)
                if target.path not in reach:
                    with Bank.open_readonly(target.path, target.name, clock=self.banks.clock) as bank:
                        if find(bank, memory_id):
                            return name
        return None
