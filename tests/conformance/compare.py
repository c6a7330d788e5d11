"""Compare two JSON values: absent differs from null, 1 equals 1.0, order counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_MISSING = object()


def first_difference(actual: Any, expected: Any, path: str = "expected") -> str | None:
    """Return where and how two values first differ, or ``None``."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in [*expected, *(k for k in actual if k not in expected)]:
            here = f"{path}.{key}"
            if key not in actual:
                return f"{here}: missing, expected {_short(expected[key])}"
            if key not in expected:
                return f"{here}: unexpected {_short(actual[key])}"
            if found := first_difference(actual[key], expected[key], here):
                return found
        return None
    if _is_list(expected) and _is_list(actual):
        for index, (ours, theirs) in enumerate(zip(actual, expected, strict=False)):
            if found := first_difference(ours, theirs, f"{path}[{index}]"):
                return found
        if len(actual) != len(expected):
            return f"{path}: {len(actual)} entries, expected {len(expected)}"
        return None
    if _scalar_equal(actual, expected):
        return None
    return f"{path}: {_short(actual)}, expected {_short(expected)}"


def apply_differences(rules: Sequence[Mapping[str, Any]], actual: Any, expected: Any) -> tuple[Any, Any]:
    """Return copies of both values in which the declared deliberate differences are equal if they hold."""
    ours, theirs = json.loads(json.dumps(actual)), json.loads(json.dumps(expected))
    for rule in rules:
        for path in list(_paths(theirs, _steps(rule["path"]))):
            _apply(rule, path, ours, theirs)
    return ours, theirs


def _apply(rule: Mapping[str, Any], path: Sequence[Any], ours: Any, theirs: Any) -> None:
    mine, recorded = _get(ours, path), _get(theirs, path)
    if rule["compare"] == "value":
        _set(theirs, path, rule["value"])
    elif rule["compare"] == "without":
        _set(theirs, path, [item for item in recorded if item not in rule["items"]])
        if _is_list(mine):
            _set(ours, path, [item for item in mine if item not in rule["items"]])
    elif rule["compare"] == "prefix":
        end = recorded.find(rule["until"])
        if end >= 0 and isinstance(mine, str):
            cut = end + len(rule["until"])
            _set(theirs, path, recorded[:cut])
            _set(ours, path, mine[:cut])
    elif rule["compare"] == "any":
        if recorded == rule["value"] and mine is not _MISSING:
            _set(ours, path, recorded)
    else:
        raise ValueError(f"unknown comparison {rule['compare']!r}")


def _steps(path: str) -> list[str | int | None]:
    steps: list[str | int | None] = []
    for name, index in re.findall(r"([^.\[\]]+)|\[(\*|\d+)\]", path.removeprefix("expected")):
        steps.append(name or (None if index == "*" else int(index)))
    return steps


def _paths(value: Any, steps: Sequence[Any], done: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if not steps:
        yield done
        return
    step, rest = steps[0], steps[1:]
    keys = range(len(value)) if step is None and _is_list(value) else [step]
    for key in keys:
        inner = _get(value, (key,))
        if inner is not _MISSING:
            yield from _paths(inner, rest, (*done, key))


def _get(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return value


def _set(value: Any, path: Sequence[Any], new: Any) -> None:
    holder = _get(value, path[:-1])
    if holder is not _MISSING and _get(value, path) is not _MISSING:
        holder[path[-1]] = new


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _scalar_equal(actual: Any, expected: Any) -> bool:
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, int | float) and isinstance(expected, int | float):
        return actual == expected
    return type(actual) is type(expected) and bool(actual == expected)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 300 else text[:300] + "…"
