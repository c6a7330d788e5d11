"""A real notebook kernel with the user in front of it: driven through its own protocol, as a front end does."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jupyter_client.manager import KernelManager

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from jupyter_client.blocking.client import BlockingKernelClient

VISIBLE = frozenset(
    {
        *("stream", "display_data", "update_display_data", "execute_result", "error", "clear_output"),
        *("comm_open", "comm_msg", "comm_close"),
    }
)
"""The messages that the user sees something of; that the kernel is busy, and the echo of the code, do not count."""

SHOWS_HTML: Mapping[str, Any] = {"cellId": "cell-1"}
"""What JupyterLab, Notebook 7 and VS Code add to a request."""

_SECONDS = 300

Message = Mapping[str, Any]


@dataclass(slots=True)
class Done:
    """One request: how long it took, the longest silence in it (both in milliseconds), and what was sent so far."""

    request: str
    total: float = 0.0
    silence: float = 0.0
    messages: list[Message] = field(default_factory=list)
    begun: datetime | None = None
    last: datetime | None = None

    def take(self, sent: Message) -> None:
        """Take note of a message."""
        at = sent["header"]["date"]
        if self.begun is None or self.last is None:
            self.begun = self.last = at
        if sent["msg_type"] in VISIBLE or is_idle(sent):
            self.silence = max(self.silence, (at - self.last).total_seconds() * 1000)
            self.total = (at - self.begun).total_seconds() * 1000
            self.last = at
        if sent["msg_type"] in VISIBLE:
            self.messages.append(sent)

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """What stands below the cell at the end, as a notebook would keep it."""
        shown: list[dict[str, Any]] = []
        for sent in self.messages:
            kind, content = sent["msg_type"], sent["content"]
            if kind == "clear_output":
                assert not content["wait"]
                shown.clear()
            elif kind == "update_display_data":
                for one in shown:
                    if one.get("transient", {}).get("display_id") == content["transient"]["display_id"]:
                        one["data"] = content["data"]
            elif not kind.startswith("comm_"):
                shown.append({"output_type": kind, **content})
        return shown

    @property
    def error(self) -> str | None:
        """What went wrong, if the cell ended so."""
        return next((one["evalue"] for one in self.outputs if one["output_type"] == "error"), None)

    @property
    def text(self) -> str:
        """What is shown as plain text in the end."""
        return "\n".join(one.get("data", {}).get("text/plain", "") for one in self.outputs)


def is_idle(sent: Message) -> bool:
    """Return whether a message says that the work is done."""
    return bool(sent["content"].get("execution_state") == "idle")


class Kernel:
    """A running kernel, and the widgets that it shows."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.widgets: dict[str, dict[str, Any]] = {}
        self._manager = manager
        self._client = client

    def cell(self, code: str) -> Done:
        """Run a cell that must not fail."""
        done = self.end(self.begin(code))
        assert done.error is None, f"{code}: {done.error}"
        return done

    def begin(self, code: str, *, person: bool = True, metadata: Mapping[str, Any] | None = None) -> Done:
        """Begin to run a cell, with or without a user who could answer.

        ``metadata`` is what the front end adds to the request: by default the cell's id, as JupyterLab does.
        """
        client = self._client
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "stop_on_error": True}
        request = client.session.msg(
            "execute_request",
            {**content, "allow_stdin": person},
            metadata=dict(SHOWS_HTML if metadata is None else metadata),
        )
        client.shell_channel.send(request)
        return Done(request["header"]["msg_id"])

    def sign(self, done: Done) -> Message:
        """Wait for the first thing that the user sees of a request."""
        while not done.messages:
            self.step(done)
        return done.messages[0]

    def interrupt(self) -> None:
        """Press the button that stops."""
        self._manager.interrupt_kernel()

    def end(self, done: Done) -> Done:
        """Wait until a request is done."""
        while not is_idle(self.step(done)):
            pass
        return done

    def press(self, label: str) -> Done:
        """Press the button with this label, the newest if there are several."""
        return self.end(self.begin_press(label))

    def begin_press(self, label: str) -> Done:
        """Press a button, and do not wait for what it does."""
        return self._tell(self._widget("ButtonModel", label), {"method": "custom", "content": {"event": "click"}})

    def set(self, model: str, label: str = "", **values: Any) -> Done:
        """Change what a widget holds, as typing or picking does."""
        update = {"method": "update", "state": values, "buffer_paths": []}
        return self.end(self._tell(self._widget(model, label), update))

    def state(self, model: str, label: str = "") -> Mapping[str, Any]:
        """Return what a widget holds."""
        return self.widgets[self._widget(model, label)]

    def _widget(self, model: str, label: str) -> str:
        return [
            name
            for name, state in self.widgets.items()
            if model in {state.get("_model_name"), state.get("_anywidget_id", "").rpartition(".")[2]}
            and state.get("description", "") == label
        ][-1]

    def _tell(self, widget: str, data: dict[str, Any]) -> Done:
        sent = self._client.session.msg("comm_msg", {"comm_id": widget, "data": data})
        self._client.shell_channel.send(sent)
        return Done(sent["header"]["msg_id"])

    def step(self, done: Done) -> Message:
        """Return the next message of a request, noted down."""
        while True:
            try:
                sent: Message = self._client.get_iopub_msg(timeout=_SECONDS)
            except queue.Empty:
                raise AssertionError("the kernel does not answer") from None
            if sent["parent_header"].get("msg_id") == done.request:
                done.take(sent)
                self._keep(sent)
                return sent

    def _keep(self, sent: Message) -> None:
        content = sent["content"]
        data = content.get("data", {})
        if sent["msg_type"] == "comm_open":
            self.widgets[content["comm_id"]] = dict(data.get("state", {}))
        elif sent["msg_type"] == "comm_msg" and data.get("method") == "update":
            self.widgets.get(content["comm_id"], {}).update(data.get("state", {}))
        elif sent["msg_type"] == "comm_close":
            self.widgets.pop(content["comm_id"], None)


@contextmanager
def running(folder: Path, env: Mapping[str, str]) -> Iterator[Kernel]:
    """Give a kernel that works in a folder."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder), env=dict(env))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=_SECONDS)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
