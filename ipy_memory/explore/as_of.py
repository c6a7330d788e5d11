"""Recall as it would have answered at an earlier moment, from what the banks held then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipy_memory.backends.mnemopi.pool import WRITE
from ipy_memory.backends.mnemopi.store.rewind import Rewound, rewind
from ipy_memory.clock import FixedClock
from ipy_memory.errors import MagicError
from ipy_memory.explore.agent_start import private_copy
from ipy_memory.explore.local import local_backend
from ipy_memory.jscompat.dates import covered, iso, minute_stamp

if TYPE_CHECKING:
    from ipy_memory.backends.base import RecallRequest
    from ipy_memory.model import ToolResult
    from ipy_memory.session import MemorySession


def recall_as_of(session: MemorySession, request: RecallRequest, moment: str) -> ToolResult:
    """Recall with the contents and the clock of an earlier moment, from private copies of the banks in scope.

    Parameters
    ----------
    session
        On local banks; they do not change, and nothing is counted.
    request
        The query and its limit.
    moment
        A date or time, such as ``2026-05-31`` (its end) or ``2026-05-31T14:00+02:00``; UTC without a zone.

    Returns
    -------
    ToolResult
        The text as it would have been. The notes say what was left out, and what a bank does not keep.

    Raises
    ------
    MagicError
        The moment cannot be read, or lies ahead.
    MemoryToolkitError
        The memory is on a server, or a bank cannot be copied.
    """
    found = covered(moment)
    if found is None:
        raise MagicError(
            f"{moment!r} is not a date or time", hint="such as 2026-05-31 or 2026-05-31T14:00+02:00; UTC without a zone"
        )
    if request.where is not None and request.where.at is not None:
        raise MagicError("--as-of has a clock of its own", hint="leave out --at")
    at = min(found[1], session.clock.now_ms())
    if found[0] > session.clock.now_ms():
        raise MagicError(f"{moment} lies ahead", hint="--as-of takes a moment that has passed")
    backend = local_backend(session, "a recall as of an earlier moment")
    with private_copy(session, backend, clock=FixedClock(at, session.clock.tz)) as copy:
        rewound = Rewound()
        own = local_backend(copy, "a recall as of an earlier moment")
        for target in own.recall_targets():
            if (bank := own.banks.get(target, WRITE)) is not None:
                rewound += rewind(bank, iso(at))
        result = copy.recall(
            request.query,
            limit=request.limit,
            touch=False,
            where=request.where,
            cancel=request.cancel,
            traces=request.traces,
        )
    return result.with_notes(_notes(at, rewound))


def _notes(at: int, rewound: Rewound) -> list[str]:
    """Return what was left out, and what cannot be known."""
    parts = [f"{rewound.made} {'memory' if rewound.made == 1 else 'memories'} made later left out"]
    parts += [f"{rewound.ended} that ended later valid"] if rewound.ended else []
    unknown = ["texts changed and memories deleted since"]
    unknown += [f"the recall counts of {rewound.recalled} memories at that time"] if rewound.recalled else []
    return [
        f"As of {minute_stamp(at)} UTC, from a copy: {', '.join(parts)}. A bank does not keep {' and '.join(unknown)}."
    ]
