"""Adapters: each turns the written inputs of one kind of case into what the product gives for them.

An adapter is ``run(case) -> value``; the value has the shape of the case's ``expected``. It registers itself with
``@kind("stem", …)``; a stem may end in ``*``. Recall cases are told by their folder: ``recall/*``, ``recall/failures``.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
