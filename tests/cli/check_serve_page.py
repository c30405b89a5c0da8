"""check_serve_page.py STEPSIM OUT: the page of `stepsim serve` in a browser, from an empty page to an answer that changed."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import browser  # noqa: E402

stepsim, out = sys.argv[1:]
os.makedirs(out, exist_ok=True)
if not browser.find():
    assert "STEPSIM_REQUIRE_BROWSER" not in os.environ, "no Chromium to open the page with"
    print("skipped: no Chromium to open the page with (Debian: chromium)")
    sys.exit(77)


def until(page, expression, what):
    for _ in range(1000):
        if value := page.value(expression):
            return value
        assert not page.complaints, page.complaints
        time.sleep(0.02)
    raise AssertionError(f"{what}: {page.value('document.body.innerText')}")


def calm(page):
    """Until every answer is there."""
    until(page, "answers.a && !answers.a.drawing && (!state.b || (answers.b && !answers.b.drawing && !answers.asking)) && "
                "document.getElementById('answers').getAttribute('aria-busy') !== 'true'", "no answer came")


def text(page):
    return page.value("document.body.innerText.replaceAll('\\u00a0', ' ')")


def step_time(page):
    return page.value("answers.a.run.step_time_s")


def choose(page, side, key, value):
    before = page.value(f"JSON.stringify(answers.{side})")
    page.value(f"(() => {{ const e = document.getElementById('{side}-{key}'); e.focus(); e.value = {json.dumps(value)}; "
               "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true})); })()")
    until(page, f"JSON.stringify(answers.{side}) !== {json.dumps(before)}", f"{key}={value} changes nothing")
    calm(page)


def drop(page, *files):
    made = ", ".join(f"new File([{json.dumps(body)}], {json.dumps(name)})" for name, body in files)
    page.value(f"drop('a', [{made}])")
    until(page, f"Object.keys(state.files).includes({json.dumps(files[-1][0])})", "the file is not taken")
    time.sleep(0.1)
    calm(page)


def run(*words):
    return json.loads(subprocess.run([stepsim, "run", *words, "--json"], check=True, capture_output=True).stdout)


def check_one(page, link):
    page.open(link)
    calm(page)
    first = step_time(page)
    assert first == run("serve")["step_time_s"]
    choose(page, "a", "model", "llama-3.2-1b")
    assert step_time(page) < first / 2, "a smaller model takes as long"
    choose(page, "a", "job.micro_batch", "4")
    choose(page, "a", "strategy.checkpointing", "none")
    wanted = run("serve", "--set", "model=llama-3.2-1b", "--set", "job.micro_batch=4", "--set", "strategy.checkpointing=none")
    assert step_time(page) == wanted["step_time_s"] and page.value("answers.a.run.interval_s") == wanted["interval_s"]
    shown = text(page)
    for said in ("in 8 of 10 draws", "Where the time goes", "compute", "usable 84.1 GB", "llama-3.2-1b on 1 x h100-8",
                 "stepsim run serve --set model=llama-3.2-1b --set job.micro_batch=4 --set strategy.checkpointing=none"):
        assert said in shown, said
    assert page.value("document.querySelectorAll('#memory svg rect').length") > 4
    # What is wrong stands beside its key, and goes with it.
    choose(page, "a", "job.micro_batch", "0")
    problem = page.value("document.getElementById('problem-job.micro_batch').innerText")
    assert problem == "--set: job.micro_batch: expected a number from 1 to 65536, found 0", problem
    assert page.value("document.getElementById('a-job.micro_batch').getAttribute('aria-invalid')") == "true"
    choose(page, "a", "job.micro_batch", "4")
    assert page.value("document.getElementById('problem-job.micro_batch').innerText") == ""
    assert "cannot be run" not in text(page)


def check_taken(page):
    """The scenario and the page, as they would be saved."""
    page.value("window.saved = {}; saveAs = (name, type, text) => { saved[name] = text; }")
    for label in ("Download the scenario", "Download the page"):
        page.value(f"[...document.querySelectorAll('#take button')].find((b) => b.innerText === '{label}').click()")
    until(page, "saved['stepsim.html']", "no page to save")
    assert page.value("saved['stepsim.html'].startsWith('<!doctype html>') && saved['stepsim.html'].includes('llama-3.2-1b')")
    path = os.path.join(out, "scenario.yaml")
    with open(path, "w") as file:
        file.write(page.value("saved['scenario.yaml']"))
    assert run(path)["step_time_s"] == step_time(page)


def check_two(page):
    page.value("[...document.querySelectorAll('button')].find((b) => b.innerText === 'Put another beside it').click()")
    until(page, "state.b && answers.gap", "no gap came")
    calm(page)
    choose(page, "b", "strategy.zero", "2")
    choose(page, "b", "job.micro_batch", "2")
    gap = until(page, "answers.gap", "no gap came")
    assert {row["key"] for row in gap["settings"]["rows"]} >= {"job.micro_batch"}, gap["settings"]
    total = sum(row["seconds"] for row in gap["settings"]["rows"]) + gap["settings"]["rest_s"]
    assert abs(total - gap["gap_s"]) < 1e-9 * gap["a"]["step_time_s"]
    assert gap["summary"] in text(page)
    left, top, width, height = page.box("#gap svg g.bar:nth-of-type(3) rect")
    page.move(left + width / 2, top + height / 2)
    told = page.value("document.getElementById('tip').innerText")
    assert " in A, " in told, told


def check_link(page):
    """The link alone shows the same, to whoever opens it."""
    link, shown = page.value("location.href"), page.value("JSON.stringify([state, answers.a.run.step_time_s, answers.b.run.step_time_s])")
    page.call("Page.navigate", url="about:blank")
    page.open(link)
    calm(page)
    assert page.value("JSON.stringify([state, answers.a.run.step_time_s, answers.b.run.step_time_s])") == shown
    page.value("[...document.querySelectorAll('button')].find((b) => b.innerText === 'Take B away').click()")
    until(page, "!state.b && !location.hash.includes('b=')", "B stays")


def check_files(page):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32,
              "num_key_value_heads": 8, "num_hidden_layers": 8, "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16"}
    drop(page, ("config.json", json.dumps(config)))
    assert page.value("state.a.set.model") == "config.json" and "on 1 x h100-8" in text(page)
    drop(page, ("ds.json", json.dumps({"zero_optimization": {"stage": 1}, "bf16": {"enabled": True}})))
    assert page.value("answers.a.keys.find(({key}) => key === 'strategy.zero').value") == "1", text(page)
    drop(page, ("train.yaml", "base_model: NousResearch/Llama-3.2-1B\nsequence_len: 2048\nmicro_batch_size: 2\n"))
    assert page.value("state.a.source") == "train.yaml" and "not in the file" in text(page), text(page)
    kept = step_time(page)
    link = page.value("location.href")
    page.call("Page.navigate", url="about:blank")
    page.open(link)
    calm(page)
    assert step_time(page) == kept and page.value("state.files['train.yaml']").startswith("base_model")
    page.value("drop('a', [new File(['a: [1'], 'broken.yaml')])")
    until(page, "document.getElementById('settings').innerText.includes('broken.yaml')", "nothing is said of a broken file")
    # What is refused changes nothing of what is seen.
    page.value("drop('a', [new File(['echo'], 'run.h5')])")
    until(page, "document.getElementById('settings').innerText.includes('run.h5: cannot be dropped: its name has to end in .yaml, .yml, .json, .toml, .py')", "nothing is said of a script")
    assert step_time(page) == kept and page.value("document.getElementById('a-job.sequence').placeholder") == "2048"
    assert not page.value("document.getElementById('answers').classList.contains('stale')")


def check_left_out(page):
    assert "1 file of your folders left out" in text(page)
    page.value("document.querySelector('#left-out summary').click()")
    assert f"{folder}/broken.yaml:2: is no valid YAML: did not find expected ',' or ']'" in text(page), text(page)


def check_look(page, link):
    """Nothing is wider than the window, and whatever can be pressed has a name and is reached by the tab key."""
    page.call("Page.navigate", url="about:blank")
    page.open(link + "#a=serve&a.model=llama-3.2-1b&b=serve&b.model=llama-3.2-1b&b.job.micro_batch=4&b.strategy.zero_optimization.overlap_comm=false")
    calm(page)
    for width, dark in ((1280, False), (390, True), (390, False), (1280, True)):
        page.look(width=width, dark=dark)
        page.value("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        wide = page.value("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} pixels wide in a window of {width}"
        page.picture(os.path.join(out, f"serve-{width}-{'dark' if dark else 'light'}.png"), whole=True)
    nameless = page.value("[...document.querySelectorAll('button, a, select, input:not([hidden]), summary, pre')]"
                          ".filter((e) => e.tabIndex < 0 || !(e.innerText.trim() || e.ariaLabel || (e.labels || []).length)).map((e) => e.outerHTML)")
    assert not nameless, nameless
    names = [node.get("name", {}).get("value", "") for node in page.call("Accessibility.getFullAXTree")["nodes"] if node["role"]["value"] in ("combobox", "textbox")]
    assert names and all(names) and any("sharding" in name for name in names), names
    # From the keyboard alone: to the first field, and another value into it.
    page.value("document.getElementById('a-cluster.nodes').focus()")
    for key in "2":
        page.press(key)
    until(page, "answers.a.gpus === 16", "typing changes nothing")


folder = os.path.realpath(os.path.join(out, "folder"))
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "broken.yaml"), "w") as broken:
    broken.write("a: [1\n")
server = subprocess.Popen([stepsim, "serve", "--port", "0", folder], stdout=subprocess.PIPE, text=True, cwd=out)
try:
    address = server.stdout.readline().strip()
    with browser.Browser() as page:
        check_one(page, address)
        check_left_out(page)
        check_taken(page)
        check_two(page)
        check_link(page)
        check_files(page)
        check_look(page, address)
        assert not page.complaints, "\n".join(page.complaints)
finally:
    server.send_signal(signal.SIGINT)
    assert server.wait(10) == 0
print("the page answers")
