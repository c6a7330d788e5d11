"""The tools' metadata and when they exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.errors import HindsightError, MemoryToolkitError
from ipy_memory.tools import SPECS, available
from tests.conformance.registry import Case, kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.model import ToolResult


def tool_answer(call: Callable[[], ToolResult]) -> dict[str, Any]:
    """Return what a tool call gives, or its error."""
    try:
        result = call()
    except MemoryToolkitError as error:
        name = "HindsightError" if isinstance(error, HindsightError) else "Error"
        return {"error": error.message, "error_name": name}
    shown: dict[str, Any] = {"text": result.text}
    if result.details:
        shown["details"] = dict(result.details)
    if result.useless:
        shown["useless"] = True
    return shown


@kind("tools")
def run(case: Case) -> Any:
    spec = SPECS[case.name.partition(" #")[0]]
    plain = ["off", "local", "hindsight", "mnemopi", "sharpshooter"]
    return {
        "label": spec.label,
        "approval": spec.approval,
        "strict": spec.strict,
        "loadMode": spec.load_mode,
        "summary": spec.summary,
        "schema": spec.parameters,
        "available_for_backend": {name: available(spec.name, name) for name in plain}
        | {"hindsight with empty apiUrl": available(spec.name, "hindsight", api_url="")},
    }
