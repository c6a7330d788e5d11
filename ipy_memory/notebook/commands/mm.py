"""``%memory mm``: the mental models of a Hindsight bank, its standing summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipy_memory.commands.grammar import Parsed, one_of
from ipy_memory.commands.table import COMMANDS
from ipy_memory.errors import HindsightError, MagicError
from ipy_memory.jscompat.dates import shown_stamp
from ipy_memory.notebook.commands import handles
from ipy_memory.notebook.commands.banks import remote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ipy_memory.backends.hindsight.backend import HindsightBackend
    from ipy_memory.notebook.magics import MemoryMagics
    from ipy_memory.notebook.result import TextResult


def _list(backend: HindsightBackend) -> str:
    from ipy_memory.backends.hindsight import mental_models
    from ipy_memory.backends.hindsight.client import listed

    try:
        answer = backend.service.client.list_mental_models(backend.retain_bank, detail="metadata")
    except HindsightError as error:
        if error.status_code != 404:
            raise
        from ipy_memory.backends.hindsight.admin import NOT_THERE

        return f"Bank {backend.retain_bank} is {NOT_THERE}"
    models = mental_models.models_of(listed("listMentalModels", answer, backend.service.where))
    return "\n".join(map(mental_models.list_line, models)) or f"Bank {backend.retain_bank} has no mental models."


def _show(backend: HindsightBackend, model_id: str) -> str:
    from ipy_memory.backends.hindsight import mental_models

    model = _found(backend, model_id)
    [known] = mental_models.models_of([model])
    return f"{mental_models.list_line(known)}\n\n{known.content or '(nothing written yet)'}"


def _history(backend: HindsightBackend, model_id: str) -> str:
    from ipy_memory.backends.hindsight import mental_models

    newer = _text(_found(backend, model_id).get("content"))
    parts = []
    for version in backend.service.client.get_mental_model_history(backend.retain_bank, model_id):
        if isinstance(version, dict):
            older = _text(version.get("previous_content"))
            when = shown_stamp(_text(version.get("changed_at")), None)
            parts.append(f"changed at {when}:\n{mental_models.diff(older, newer)}")
            newer = older
    return "\n\n".join(parts) or f"Mental model {model_id} has no earlier versions."


def _seed(backend: HindsightBackend) -> str:
    from ipy_memory.backends.hindsight.client import listed

    backend.service.ensure_bank()
    missing = backend.models.missing_seeds(lambda answer: listed("listMentalModels", answer, backend.service.where))
    for seed in missing:
        backend.models.create(seed)
    return f"Made: {', '.join(seed.id for seed in missing)}." if missing else "Every built-in mental model is there."


def _refresh(backend: HindsightBackend, model_id: str) -> str:
    answer = backend.service.client.refresh_mental_model(backend.retain_bank, model_id)
    operation = _text(answer.get("operation_id")) if isinstance(answer, dict) else ""
    return f"Queued: mental model {model_id} is written again" + (f" (operation {operation})." if operation else ".")


def _delete(backend: HindsightBackend, model_id: str) -> str:
    if not backend.service.client.delete_mental_model(backend.retain_bank, model_id):
        raise _unknown(backend, model_id)
    return f"Mental model {model_id} was deleted from bank {backend.retain_bank}."


def _reload(backend: HindsightBackend) -> str:
    if not backend.models.reload():
        raise MagicError("the mental models could not be loaded", hint="the session goes on with those it has")
    return backend.models.block or "No mental model has anything to show."


OF_BANK: Mapping[str, Callable[[HindsightBackend], str]] = {"list": _list, "seed": _seed, "reload": _reload}
OF_MODEL: Mapping[str, Callable[[HindsightBackend, str], str]] = {
    "show": _show,
    "refresh": _refresh,
    "history": _history,
    "delete": _delete,
}


@handles("mm")
def mm(magics: MemoryMagics, parsed: Parsed) -> TextResult:
    """Carry out one action on the bank's mental models."""
    from ipy_memory.notebook.result import TextResult

    action, _, model_id = parsed.word.partition(" ")
    action, model_id = one_of("mm", action or "list", COMMANDS["mm"].options), model_id.strip()
    backend = remote(magics, "mental models")
    if action in OF_BANK:
        if model_id:
            raise MagicError(f"%memory mm {action} takes nothing more", hint="see %memory mm -h")
        return TextResult(OF_BANK[action](backend))
    if not model_id:
        raise MagicError(f"%memory mm {action} takes the id of a mental model", hint="%memory mm list shows them")
    if action == "delete" and "yes" not in parsed.flags:
        raise MagicError(
            f"this would delete mental model {model_id} from bank {backend.retain_bank}",
            hint=f"%memory mm --yes delete {model_id} does it",
        )
    return TextResult(OF_MODEL[action](backend, model_id))


def _found(backend: HindsightBackend, model_id: str) -> dict[str, Any]:
    model = backend.service.client.get_mental_model(backend.retain_bank, model_id)
    if model is None:
        raise _unknown(backend, model_id)
    if not isinstance(model, dict) or not isinstance(model.get("id"), str):
        from ipy_memory.backends.hindsight.client import odd_answer

        raise odd_answer("getMentalModel", backend.service.where)
    return model


def _unknown(backend: HindsightBackend, model_id: str) -> MagicError:
    where = f"bank {backend.retain_bank}"
    return MagicError(f"there is no mental model {model_id}", where=where, hint="%memory mm list shows them")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
