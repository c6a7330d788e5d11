"""A session's copy of a bank's mental models: loaded in the background, cached for the instructions (B-04, B-06)."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from ipy_memory import process
from ipy_memory.backends.hindsight import mental_models
from ipy_memory.backends.hindsight.client import items_of
from ipy_memory.errors import MemoryToolkitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ipy_memory.backends.hindsight.bank import Service
    from ipy_memory.clock import Clock, Timers

MENTAL_MODEL_FIRST_TURN_DEADLINE_MS = 1_500
"""The first turn waits no longer than this for the models."""

log = logging.getLogger("ipy_memory.backends.hindsight")


class ModelSnapshot:
    """A bank's mental models as one block; ``block`` is ``None`` while there is none."""

    def __init__(self, service: Service, *, clock: Clock, timers: Timers) -> None:
        self._service = service
        self._clock = clock
        self._timers = timers
        self._begin_child()
        process.after_fork_in_child(self._begin_child)
        self._tried_ms: int | None = None
        self._stopped = False
        self.block: str | None = None

    def _begin_child(self) -> None:
        # A forked child has no thread that would end a load of the parent.
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._ready.set()
        self._cancel: Callable[[], None] | None = None

    def start(self) -> None:
        """Load the models in the background, seeding the bank first where that is wanted."""
        if self._service.config.mental_models_enabled:
            self._in_background(seed=self._service.config.mental_model_auto_seed)

    def wait(self) -> None:
        """Wait for a load that is under way, up to the first turn's deadline."""
        self._ready.wait(MENTAL_MODEL_FIRST_TURN_DEADLINE_MS / 1000)

    def refresh_if_old(self) -> None:
        """Load again in the background when the snapshot is older than the interval (B-04)."""
        config = self._service.config
        age = None if self._tried_ms is None else self._clock.now_ms() - self._tried_ms
        if (
            config.mental_models_enabled
            and config.mental_model_refresh_interval_ms > 0
            and age is not None
            and age > config.mental_model_refresh_interval_ms
            and self._ready.is_set()
        ):
            self._in_background(seed=False)

    def reload(self) -> bool:
        """Load now; ``False`` when that failed (the block then stays as it was)."""
        return self._service.config.mental_models_enabled and self._load(seed=False)

    def _in_background(self, *, seed: bool) -> None:
        def load() -> None:
            self._load(seed=seed)

        self._ready.clear()
        self._cancel = self._timers.call_later(0, load)

    def stop(self) -> None:
        """Begin no further load."""
        self._stopped = True
        if self._cancel is not None:
            self._cancel()
        self._ready.set()

    def wait_for_end(self) -> None:
        """Wait for a load that was under way at :meth:`stop`, up to the first turn's deadline."""
        if self._lock.acquire(timeout=MENTAL_MODEL_FIRST_TURN_DEADLINE_MS / 1000):
            self._lock.release()

    def _load(self, *, seed: bool) -> bool:
        service = self._service
        try:
            with self._lock:
                if self._stopped:
                    return False
                service.ensure_bank()
                if seed:
                    self._seed()
                listed = service.client.list_mental_models(service.bank, detail="content")
                models = mental_models.models_of(items_of(listed))
                shown = mental_models.shown_models(models, service.scope.recall_tags)
                budget = service.config.mental_model_max_render_chars
                self.block = mental_models.render_block(shown, budget) or None
                return True
        except MemoryToolkitError as error:
            log.debug("Hindsight: mental models of %s could not be loaded: %s", service.bank, error)
            return False
        finally:
            self._tried_ms = self._clock.now_ms()
            self._ready.set()

    def _seed(self) -> None:
        try:
            missing = self.missing_seeds()
        except MemoryToolkitError as error:
            log.debug("Hindsight: mental models of %s could not be listed: %s", self._service.bank, error)
            return
        for seed in missing:
            try:
                self.create(seed)
            except MemoryToolkitError as error:
                log.debug("Hindsight: mental model %s could not be made: %s", seed.id, error)

    def missing_seeds(self, entries: Callable[[Any], list[Any]] = items_of) -> list[mental_models.Seed]:
        """Return the built-in models that the bank does not have yet (B-03); ``entries`` reads the server's list."""
        service = self._service
        listed = service.client.list_mental_models(service.bank, detail="metadata")
        wanted = mental_models.seeds_for(service.config.scoping, service.scope.retain_tags)
        return mental_models.missing_seeds(wanted, mental_models.models_of(entries(listed)))

    def create(self, seed: mental_models.Seed) -> None:
        """Make a built-in model."""
        self._service.client.create_mental_model(
            self._service.bank,
            seed.name,
            seed.source_query,
            id=seed.id,
            tags=seed.tags or None,
            max_tokens=seed.max_tokens,
            trigger=mental_models.TRIGGER,
        )
