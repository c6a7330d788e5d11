"""Look at the notebooks in JupyterLab: ``python -m notebooks.pictures FOLDER [NAME ...]``.

A copy of each notebook is opened in a browser without its outputs, all its cells are run from the menu, and the whole
of it is kept as one picture in the folder. What a reader would have to scroll sideways for is printed.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from PIL import Image

from notebooks.refresh import CELL_SECONDS, chosen
from tests.services.jupyterlab import chromium, running_lab

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Page

WIDTH = 1280
"""Of the window: with the file browser beside it, a notebook gets 950 pixels of it."""

TALL = 14_000
"""A window in which every notebook fits, since JupyterLab draws only the cells in sight."""

COLOURS = 48

RUN = """() => {
  const cells = [...document.querySelectorAll('.jp-CodeCell')];
  return cells.every(cell => /\\[\\d+\\]/.test(cell.querySelector('.jp-InputPrompt').textContent))
    && [...document.images].every(image => image.complete);
}"""
WIDE = """() => [...document.querySelectorAll('.jp-Cell')].flatMap((cell, number) =>
  [...cell.querySelectorAll('.jp-OutputArea-output, .cm-scroller')]
    .filter(part => part.scrollWidth > part.clientWidth + 1)
    .map(part => `cell ${number}: ${part.scrollWidth} of ${part.clientWidth} pixels`))"""
END = "() => Math.max(...[...document.querySelectorAll('.jp-Cell')].map(cell => cell.getBoundingClientRect().bottom))"


def look_at(page: Page, url: str) -> tuple[bytes, list[str]]:
    """Run the notebook at an address; return a picture of all of it, and what is too wide."""
    page.goto(url)
    page.locator(".jp-CodeCell").first.wait_for()
    page.get_by_text("| Idle").first.wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(RUN, timeout=CELL_SECONDS * 1000)
    page.get_by_text("| Idle").first.wait_for()
    page.mouse.move(0, 0)
    box = page.locator(".jp-Notebook").bounding_box()
    assert box is not None
    clip = {**box, "height": page.evaluate(END) - box["y"] + 10}
    return page.screenshot(clip=clip, animations="disabled"), page.evaluate(WIDE)


def small(picture: bytes) -> Image.Image:
    """Return a picture with few colours, which is a third of the size."""
    return Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)


def main(folder: str, names: Sequence[str]) -> int:
    """Take the pictures of the notebooks that are meant."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="pictures-") as home,
        running_lab(Path(home)) as (url, work),
        chromium(Path(home) / "profile", width=WIDTH, height=TALL) as context,
    ):
        for path in chosen([Path(name).name for name in names]):
            notebook = nbformat.read(path, as_version=4)
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs, cell.execution_count = [], None
            nbformat.write(notebook, work / path.name)
            page = context.new_page()
            picture, wide = look_at(page, f"{url}/lab/tree/{path.name}?reset")
            page.close(run_before_unload=False)
            small(picture).save(target / f"{path.stem}.png", optimize=True)
            print("\n  ".join([path.name, *wide]))
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
