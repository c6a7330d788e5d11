"""Tables and plots in JupyterLab, in a window of 1280 pixels with the file browser beside the notebook."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import pytest
from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

START = "%load_ext ipy_memory\nfrom ipy_memory import demo\ndemo.start(fresh=True);"
TOO_WIDE = (
    "area => [...area.querySelectorAll('.jp-OutputArea-output')].filter(o => o.scrollWidth > o.clientWidth + 1).length"
)
LINES = "cell => { const r = document.createRange(); r.selectNodeContents(cell); return r.getClientRects().length; }"


def cells(output: Locator, column: str) -> list[Locator]:
    """Return the cells of one column of the table of an output."""
    headers = output.locator("thead th").all_inner_texts()
    return output.locator(f"tbody tr td:nth-child({headers.index(column) + 1})").all()


@pytest.mark.parametrize(
    "line",
    [
        "%memory scopes deploy target",
        "%memory browse --bank *",
        "%memory chain a976218f7ebea1ed",
        "%recall deploy target",
        "%memory panel --static recall deploy target",
    ],
)
def test_a_table_fits_and_no_date_is_broken(lab: Lab, line: str) -> None:
    ended = "%memory invalidate --by a976218f7ebea1ed 31018c0cb5c53549"
    notebook = lab.open("tables", [START, ended, line])
    notebook.page.set_viewport_size({"width": 1280, "height": 1500})
    notebook.run(0)
    notebook.run(1)
    output = notebook.run(2)
    output.locator("table").first.wait_for()
    assert output.evaluate(TOO_WIDE) == 0
    headers = output.locator("thead th").all_inner_texts()
    for column in {"date", "valid_until"} & set(headers):
        assert {cell.evaluate(LINES) for cell in cells(output, column) if cell.inner_text()} == {1}
    for column in {"content", "best hit"} & set(headers):
        box = cells(output, column)[0].bounding_box()
        assert box is not None
        assert box["width"] > 160


def test_a_plot_brings_its_own_ground_for_its_dark_text(lab: Lab) -> None:
    drawn = "from ipy_memory.notebook import plots\nax = plots.decay()"
    notebook = lab.open("plots", [START, drawn])
    notebook.run(0)
    image = notebook.run(1).locator("img")
    source = image.get_attribute("src")
    assert source is not None
    picture = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))).convert("RGBA")
    assert picture.getpixel((1, 1)) == (255, 255, 255, 255)
