"""The tools' metadata and when they exist."""

from __future__ import annotations

from typing import Any

from ipy_memory.tools import SPECS, available
from tests.conformance.registry import Case, kind


@kind("tools")
def run(case: Case) -> Any:
    spec = SPECS[case.name]
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
