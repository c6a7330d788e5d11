"""Hooks at the end and at a fork of the process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

from ipy_memory import process
from ipy_memory.process import Hook


class Holder:
    def __init__(self, seen: list[str], name: str, *, fails: bool = False) -> None:
        self.seen, self.name, self.fails = seen, name, fails

    def end(self) -> None:
        if self.fails:
            raise OSError("no disk")
        self.seen.append(self.name)


def test_methods_run_in_reverse_order_and_one_failure_stops_no_other() -> None:
    hook, seen = Hook(), list[str]()
    held = [Holder(seen, "first"), Holder(seen, "bad", fails=True), Holder(seen, "last")]
    for one in held:
        hook.add(one.end)
    hook.run()
    assert seen == ["last", "first"]


def test_a_cancelled_or_collected_method_does_not_run() -> None:
    hook, seen = Hook(), list[str]()
    kept, gone = Holder(seen, "kept"), Holder(seen, "gone")
    cancel = hook.add(kept.end)
    hook.add(gone.end)
    del gone
    gc.collect()
    assert len(hook) == 1
    cancel()
    cancel()
    hook.run()
    assert seen == []


def test_a_forked_child_runs_the_hook_and_the_parent_does_not() -> None:
    seen: list[str] = []
    holder = Holder(seen, "child")
    cancel = process.after_fork_in_child(holder.end)
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if seen == ["child"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert seen == []
    finally:
        cancel()


def test_the_end_of_the_interpreter_runs_the_hook() -> None:
    program = (
        "from ipy_memory import process\n"
        "class Holder:\n"
        "    def end(self): print('ended')\n"
        "holder = Holder()\n"
        "process.at_exit(holder.end)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "ended\n"


def test_an_unloaded_extension_leaves_no_exit_hook_behind() -> None:
    holder = Holder([], "any")
    cancel = process.at_exit(holder.end)
    process.forget_exit()
    assert "exit" in process._asked
    cancel()
    if not len(process._exit):
        process.forget_exit()
        assert "exit" not in process._asked
