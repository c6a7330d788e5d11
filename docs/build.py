"""Build the reference of the Python API from the docstrings: ``python -m docs.build FOLDER``."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

import pdoc.render

import ipy_memory
from ipy_memory.frames import build

MODULES = (
    "ipy_memory",
    "backends.base",
    "clock",
    "conversation",
    "errors",
    "explore",
    "frames.build",
    "model",
    "redact",
    "session",
    "settings.resolve",
    "tools",
)
"""What a user of the package may import; the engines are its own business."""


def main(folder: str) -> int:
    """Write the pages; a docstring that cannot be rendered, or a name that is not there, is an error."""
    warnings.simplefilter("error")
    # A named tuple's own constructor is made in a module that knows none of our names.
    warnings.filterwarnings("ignore", message=r".* for ipy_memory\.\S*\.__init__\.")
    for name in ipy_memory.__all__:
        setattr(ipy_memory, name, getattr(ipy_memory, name))  # pdoc does not see what is loaded on first use
    build.__all__ = [name for name in build.__all__ if name != "DataFrame"]  # its pages are pandas' own
    names = [name if name == "ipy_memory" else f"ipy_memory.{name}" for name in MODULES]
    for name in names:
        importlib.import_module(name)
    pdoc.render.configure(docformat="numpy")
    pdoc.pdoc(*names, output_directory=Path(folder))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m docs.build FOLDER")
    sys.exit(main(sys.argv[1]))
