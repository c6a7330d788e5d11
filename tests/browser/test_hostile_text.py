"""Memory text that tries to run in JupyterLab, through every form in which a frame is displayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

START = """\
from IPython.display import HTML, display
from tests.frames.test_safe import DISPLAYS, PAYLOADS, hit_of, hits
from ipy_memory.frames.build import hits_frame
from ipy_memory.notebook.result import RecallFrame
frame = hits()
whole = RecallFrame(hits_frame(tuple(map(hit_of, PAYLOADS))), chr(10).join(PAYLOADS))
"""
SHOW = """\
display(whole, frame, frame[["content"]], frame.style, frame.style.format(precision=2))
display(frame.set_index("content").style, frame.rename(columns={"id": PAYLOADS[1]}).style)
display(frame.assign(one=1).pivot_table(index="content", columns="id", values="one").style)
for show in DISPLAYS.values():
    display(HTML(str(show(frame))))
print("all displayed")
"""
CANARY = "() => { window.ran = []; window.fired = () => window.ran.push(1); }"


def test_no_memory_text_runs_in_any_display(lab: Lab) -> None:
    """A01: the page's own function, which each payload calls, is never called."""
    notebook = lab.open("hostile", [START, SHOW, "HTML('<img src=y onerror=fired()>')"])
    notebook.page.evaluate(CANARY)
    notebook.run(0)
    output = notebook.run(1)
    output.get_by_text("all displayed").wait_for()
    notebook.picture("hostile")
    live = output.locator(".jp-OutputArea-output").locator("script, iframe, object, embed, form, video, img, a")
    assert [element.evaluate("element => element.outerHTML") for element in live.all()] == []
    assert notebook.page.evaluate("() => window.ran.length") == 0
    # The same text that is not escaped does run, so that the check above can fail.
    notebook.run(2)
    notebook.page.wait_for_function("() => window.ran.length > 0")
