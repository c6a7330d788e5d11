"""A session on an agent's memory: :class:`MemorySession` and :func:`open_session`."""

from ipy_memory.session.memory_session import MemorySession
from ipy_memory.session.opening import open_session

__all__ = ["MemorySession", "open_session"]
