"""docs/report.py STEPSIM: makes docs/report.png again, the picture in docs/report.md (needs Chromium)."""

import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "tests", "support"))
import browser  # noqa: E402

with tempfile.TemporaryDirectory() as folder, browser.Browser() as page:
    path = os.path.join(folder, "page.html")
    subprocess.run([sys.argv[1], "report", "mpt7b-zero3-offload", "-o", path], check=True, stdout=subprocess.DEVNULL)
    page.open(path, width=1000)
    bottom = page.value("document.querySelector('#timeline').getBoundingClientRect().bottom + scrollY") + 16
    page.open(path, width=1000, height=int(bottom))
    page.box("#timeline canvas")
    page.value("scrollTo(0, 0)")
    left, top, width = page.value("(({left, top, width}) => [left, top, width])(charts[0].canvas.getBoundingClientRect())")
    page.move(left + 0.4 * width, top + page.value("charts[0].rows[4].y") + 15)
    page.picture(os.path.join(here, "report.png"))
