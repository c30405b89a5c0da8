"""check_page.py STEPSIM OUT SOURCE: a report page draws itself in a browser without a complaint or a
request, shows what the run holds, answers to mouse, touch and keys, and fits a phone and paper."""

import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import browser  # noqa: E402

stepsim, out, source = sys.argv[1:]
os.makedirs(out, exist_ok=True)


def report(name, *words):
    path = os.path.join(out, name)
    subprocess.run([stepsim, "report", *words, "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path


def check_colours():
    """Every cause has a colour of its own, in light and in dark, and a meaning."""
    with open(f"{source}/sim/labels.hpp") as file:
        causes = re.search(r"cause_names\{(.*?)\}", file.read(), re.S)[1]
    with open(f"{source}/analysis/report/page/style.css") as file:
        style = file.read()
    with open(f"{source}/analysis/report/page/causes.js") as file:
        meanings = file.read()
    light = dict(re.findall(r"--cause-([a-z0-9-]+): (#\w+)", style.split("@media")[0]))
    dark = light | dict(re.findall(r"--cause-([a-z0-9-]+): (#\w+)", style.split("@media")[1]))
    for cause in re.findall(r'"(\w+)"', causes):
        name = cause.replace("_", "-")
        assert name in light, f"style.css has no --cause-{name}"
        assert re.search(rf"^  {cause}: ", meanings, re.M), f"causes.js does not say what {cause} means"
    for colours in (light, dark):
        assert len(set(colours.values())) == len(colours), "two causes share a colour"


def tip(page):
    return page.value("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")


def check_step(page, path, answer):
    page.open(path)
    text = page.value("document.body.innerText.replaceAll('\\u00a0', ' ')")
    for row in answer["breakdown"]:
        if row["exposed_s"] > 0:
            assert row["cause"].replace("_", " ") in text, row
    shown = page.value("JSON.parse(document.getElementById('data').textContent).steps[0].breakdown")
    total = sum(row["exposed"] for row in shown)
    assert abs(total - answer["step_time_s"]) < 1e-9 * total, "exposed times do not add up to the step"

    left, top, width, height = page.box("#timeline canvas")
    row = page.value("charts[0].rows[1].y") + 15  # in the middle of the compute stream
    told = []
    for part in range(1, 20):
        page.move(left + width * part / 20, top + row)
        told.append(tip(page))
    assert any("busy" in one or " of " in one for one in told), f"hovering says nothing: {told}"

    page.click(left + width / 2, top + row)
    page.value("document.querySelector('#timeline canvas').focus()")
    for _ in range(12):
        page.press("+")
    page.press("ArrowRight")
    domain = page.value("charts[0].x.domain()")
    whole = page.value("charts[0].end")
    assert domain[1] - domain[0] < whole / 1000, "keys do not zoom"
    page.press("0")
    domain = page.value("charts[0].x.domain()")
    assert abs(domain[0]) < 1e-6 * whole and abs(domain[1] - whole) < 1e-6 * whole, "0 does not show the whole step"
    for phase in page.value("[...document.querySelectorAll('#timeline .controls button')].map((b) => b.innerText)"):
        page.value(f"[...document.querySelectorAll('#timeline .controls button')].find((b) => b.innerText === {json.dumps(phase)}).click()")

    left, top, width, height = page.box("#memory svg")
    page.move(left + width / 2, top + height / 2)
    assert "GB" in tip(page) or "MB" in tip(page), "memory says nothing"
    peak = page.value("document.querySelector('#memory .peak').textContent")
    assert peak.startswith("peak "), peak
    classes = page.value("document.querySelector('#memory .legend').innerText")
    always = page.value("data.steps[0].memory.always")
    for name, size in always:
        assert name.replace("_", " ") in classes or size < 0.01 * page.value("data.steps[0].memory.peak"), (name, classes)
    held = sum(size for _, size in always)
    assert 0 < held <= page.value("data.steps[0].memory.peak") * (1 + 1e-9)
    left, top, width, height = page.box("#links svg")
    page.move(left + width / 3, top + height / 2)
    assert "full" in tip(page), "links say nothing"
    page.press("Escape")
    assert tip(page) == ""

    # One cause alone, and back.
    page.value("document.querySelector('#timeline .legend button').click()")
    assert page.value("focus.cause") is not None
    page.value("document.querySelector('#timeline .legend button').click()")
    assert page.value("focus.cause") is None


def check_sweep(page, path, varied):
    page.open(path)
    points = page.value("data.sweep.points")
    able = [point for point in points if not point["reason"]]
    assert 0 < len(able) < len(points), "some points should run and some not"
    for point in able:
        assert abs(sum(time for _, time in point["parts"]) - point["step_time"]) < 1e-6 * point["step_time"]
    assert page.value("document.querySelectorAll('#sweep .trio svg').length") == 3
    left, top, width, height = page.box("#sweep .trio circle")
    page.move(left + width / 2, top + height / 2)
    assert varied in tip(page), f"a point of a plot says nothing: {tip(page)}"
    said = [next(p["reason"] for p in points if p["reason"]), *page.value("data.sweep.reading")]
    said += [change for change, _ in page.value("data.sweep.changes")]
    text = page.value("document.body.innerText")
    for line in said:
        assert " ".join(line.split()) in text, line
    drawn = page.value("[...document.querySelectorAll('.points .mix i')].map((e) => getComputedStyle(e).backgroundColor)")
    assert drawn and "rgba(0, 0, 0, 0)" not in drawn, "a part of a step has no colour"


def check_plans(page, path):
    """Many ways to split a job: memory against time, with the plans that nothing beats in both."""
    page.open(path)
    points = page.value("data.sweep.points.filter((p) => !p.reason).map((p) => [p.step_time, p.memory])")
    front = [a for a in points if not any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in points)]
    assert 1 < len(front) < len(points), (len(front), len(points))
    drawn = page.value("[...document.querySelectorAll('#sweep circle')].filter((c) => c.getAttribute('r') === '5.5').length")
    assert drawn == len(front), f"{drawn} plans are drawn as the front of {len(front)}"
    rows = page.value("[...document.querySelectorAll('.points tbody tr')].length")
    first = page.value("document.querySelector('.points tbody tr').innerText.replaceAll('\\u00a0', ' ')")
    assert rows == len(points) and page.value("seconds(Math.min(...data.sweep.points.map((p) => p.step_time)))").replace("\u00a0", " ") in first, first
    page.value("[...document.querySelectorAll('.points th button')].find((b) => b.innerText === 'memory').click()")
    least = page.value("document.querySelector('.points tbody tr').innerText.replaceAll('\\u00a0', ' ')")
    assert page.value("bytes(Math.min(...data.sweep.points.map((p) => p.memory)))").replace("\u00a0", " ") in least, least
    names = page.value("[...document.querySelectorAll('.points th')].map((e) => e.innerText)")
    assert "tensor parallel size" in names and len(set(names)) == len(names), names


def check_gap(page, path):
    """Why two steps differ: bars that say what they are, ranges, and the paths of both."""
    page.open(path)
    gap = page.value("data.gap")
    steps = page.value("data.steps.map((s) => s.step_time)")
    assert abs(sum(row["seconds"] for row in gap["rows"]) - (steps[0] - steps[1])) < 1e-9 * max(steps)
    for row in gap["rows"]:
        assert row["range"][0] <= row["seconds"] <= row["range"][1], row
    for path_of, step in zip(gap["paths"], steps):
        assert abs(sum(part["seconds"] for part in path_of) - step) < 1e-6 * step
    parts = gap["settings"]["rows"]
    assert parts, "no setting is named"
    assert abs(sum(row["seconds"] for row in parts) + gap["settings"]["rest_s"] - (steps[0] - steps[1])) < 1e-9 * max(steps)
    assert page.value("document.querySelectorAll('#gap .by-setting g.bar').length") >= len(parts) + 2
    left, top, width, height = page.box("#gap .by-cause svg g.bar:nth-of-type(3) rect")
    page.move(left + width / 2, top + height / 2)
    assert "in 8 of 10 draws" in tip(page), f"a bar says nothing: {tip(page)}"
    text = page.value("document.body.innerText.replaceAll('\u00a0', ' ')")
    for said in (gap["sureness"], gap["parting"], gap["movers"][0], gap["paths"][0][-1]["title"]):
        assert said and said in text, said


def check_taken(page, path):
    """Every figure can be taken along, and stands alone then."""
    page.open(path)
    charts = page.value("[...document.querySelectorAll('.chart')].filter((c) => c.clientWidth && c.querySelector('svg, canvas')).length")
    offered = page.value("[...document.querySelectorAll('.take-along')].filter((e) => !e.hidden).length")
    assert charts == offered > 0, (charts, offered)
    for text in page.value("[...document.querySelectorAll('.chart')].filter((c) => c.clientWidth && c.querySelector('svg, canvas')).map((c) => asSvg(c).text)"):
        assert text.startswith("<svg") and "var(--" not in text and " style=" in text, text[:200]
    page.value("asPng(asSvg(document.querySelector('.chart')), (blob) => { window.taken = blob.size + blob.type; })")
    for _ in range(100):
        if taken := page.value("window.taken"):
            break
        time.sleep(0.05)
    assert taken and taken.endswith("image/png"), taken


def check_none(page, path):
    """A sweep of which nothing runs says what would make it run, and draws no empty axes."""
    page.open(path)
    text = page.value("document.body.innerText.replaceAll('\\u00a0', ' ')")
    assert "No point can run. Nearest is" in text and "this makes it run" in text, text
    assert page.value("data.sweep.remedies.length") > 0 and page.value("document.querySelectorAll('#sweep .chart svg').length") == 0


def check_claims(page, path):
    page.open(path)
    strips = page.value("data.claims.map((claim) => claim.conditions.map((each) => each.values.length))")
    drawn = page.value("[...document.querySelectorAll('.strip')].map((e) => e.querySelectorAll('circle').length)")
    assert drawn == [sum(each) for each in strips if each], (drawn, strips)
    text = page.value("document.body.innerText.replaceAll('\u00a0', ' ')")
    for said in ("supported", "100.0 % of 16", "zero3.step_time / zero2.step_time is", "moved most by"):
        assert said in text, said


def check_fit(page, path):
    """Nothing is wider than the window: on a phone, in the dark, on paper."""
    for width in (360, 390, 768, 1600):
        page.open(path, width=width, height=740, dark=width == 390)
        wide = page.value("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} pixels wide in a window of {width}"
        assert page.value("[...document.querySelectorAll('section')].every((s) => s.getBoundingClientRect().height > 20)")
    page.open(path, width=360, height=740)
    page.print(os.path.join(out, "page.pdf"))


def check_reach(page):
    """Whatever can be pressed is reached by the tab key, and has a name."""
    nameless = page.value("[...document.querySelectorAll('button, a, select, canvas, summary')]"
                          ".filter((e) => e.tabIndex < 0 || !(e.innerText.trim() || e.ariaLabel || e.value)).map((e) => e.outerHTML)")
    assert not nameless, nameless


check_colours()
h5 = os.path.join(out, "step.h5")
scenario = "mpt7b-zero3-offload"
answer = json.loads(subprocess.run([stepsim, "run", scenario, "--samples", "0", "--json", "-o", h5],
                                   check=True, capture_output=True).stdout)
one, again, two = report("one.html", scenario), report("again.html", scenario), report("two.html", scenario, "mpt7b-zero2", "--no-gap")
with open(one, "rb") as a, open(again, "rb") as b:
    assert a.read() == b.read(), "the same run gives another page"
assert os.path.getsize(one) < 3e6 and os.path.getsize(two) < 3e6, "a page is too large to send"

sweep = os.path.join(out, "sweep")
for left in (sweep + end for end in (".csv", ".h5", ".journal")):
    if os.path.exists(left):
        os.remove(left)
subprocess.run([stepsim, "sweep", "llama32-3b-sft-zero3", "--vary", "job.micro_batch=8,32,128", "--vary", "strategy.zero=2,3",
                "--csv", "-o", sweep], check=True, stdout=subprocess.DEVNULL)
table = report("sweep.html", sweep + ".h5")
for left in (sweep + end for end in (".csv", ".h5")):
    os.remove(left)
subprocess.run([stepsim, "sweep", f"{source}/tests/cli/grpo-small.yaml", "--vary", "cluster.nodes=1,2", "--vary",
                "job.vllm_tensor_parallel_size=1,16", "--csv", "-o", sweep], check=True, stdout=subprocess.DEVNULL)
nodes = report("nodes.html", sweep + ".h5")
split = os.path.join(out, "plans")
subprocess.run([stepsim, "plan", "llama-3.2-1b", "--cluster", "h100-8", "--global-batch", "32", "--sequence", "2048", "--samples", "0", "-o", split],
               check=True, stdout=subprocess.DEVNULL)
none = os.path.join(out, "none")
subprocess.run([stepsim, "sweep", "llama33-70b-dpo", "--vary", "job.micro_batch=8,16", "--csv", "-o", none], stdout=subprocess.DEVNULL)
nothing = report("none.html", none + ".h5")
for left in (none + end for end in (".csv", ".h5")):
    os.remove(left)
plans = report("plans.html", os.path.join(split, "plans.h5"))
gap = report("gap.html", "mpt7b-zero2", "llama32-3b-sft-zero3", "--replays", "1", "--samples", "1")
with open(os.path.join(out, "claims.yaml"), "w") as file:
    file.write("claims:\n  - id: order\n    text: Gathering takes time.\n"
               "    scenarios: {zero3: llama32-3b-sft-zero3, zero2: {from: llama32-3b-sft-zero3, set: {strategy.zero: 2}}}\n"
               "    holds: [{ratio: [zero3.step_time, zero2.step_time], at_least: 1}]\n"
               "  - {id: shadow, text: Memory grows., scenarios: {a: phi4-14b-sft-zero3}, holds: [{value: a.peak_memory, at_least: 1 GB}]}\n")
claims = report("claims.html", os.path.join(out, "claims.yaml"))

if not browser.find():
    assert "STEPSIM_REQUIRE_BROWSER" not in os.environ, "no Chromium to open the page with"
    print("skipped: no Chromium to open the page with (Debian: chromium)")
    sys.exit(77)
with browser.Browser() as page:
    check_step(page, one, answer)
    check_reach(page)
    check_fit(page, one)
    check_fit(page, two)
    check_reach(page)
    check_sweep(page, table, "micro_batch")
    check_sweep(page, nodes, "cluster.nodes")
    check_fit(page, nodes)
    check_fit(page, table)
    check_reach(page)
    check_taken(page, one)
    check_taken(page, gap)
    check_taken(page, claims)
    check_none(page, nothing)
    check_plans(page, plans)
    check_fit(page, plans)
    check_reach(page)
    check_gap(page, gap)
    check_fit(page, gap)
    check_reach(page)
    check_claims(page, claims)
    check_fit(page, claims)
    assert not page.complaints, "\n".join(page.complaints)
print(f"{os.path.getsize(one)} and {os.path.getsize(two)} bytes")
