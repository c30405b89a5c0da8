"""same_answers.py STEPSIM RANDOM_SCENARIOS PACKAGE FOLDER COUNT SEED: one step has one answer, whoever is asked.

So many random scenarios that are legal are asked of `stepsim run`, of a sweep of one point, of `serve`, of the Python package and, one in eight,
of a plan whose best is run again. Every figure is the same to the last bit; those of sweeps and plans, which another engine replays, to a billionth. Exit codes are those
that the answer has.
"""

import http.client
import json
import os
import pathlib
import re
import subprocess
import sys

stepsim, random_scenarios, package, folder, count, seed = sys.argv[1:]
sys.path.insert(0, package)
os.environ["STEPSIM"] = stepsim
import stepsim as api  # noqa: E402

SECONDS = 300
FIGURES = ("step_time_s", "tokens_per_second_per_gpu", "peak_memory_bytes")


def said(*words, codes=(0, 1)):
    done = subprocess.run([stepsim, *words, "--json"], capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode in codes, f"{' '.join(words)}: exit {done.returncode}: {done.stderr[-500:]}"
    return done.returncode, json.loads(done.stdout) if done.returncode != 2 else done.stderr


class Server:
    def __enter__(self):
        self.process = subprocess.Popen([stepsim, "serve", folder, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.port, self.token = re.search(r":(\d+)/\?token=(\w+)", self.process.stdout.readline()).groups()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def run(self, file):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=SECONDS)
        question = {"a": {"source": file, "set": []}, "interval": False, "files": []}
        connection.request("POST", f"/step?token={self.token}", json.dumps(question), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, f"{file}: {answer.status} {text[:500]}"
        return json.loads(text)["run"]


def same(one, other):
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other))


def without_asked(answer):
    return {key: value for key, value in answer.items() if key != "scenario"}


def check(file, server, plans):
    code, run = said("run", file, "--samples", "0")
    grpo = run["result"] != "run"
    assert code == (1 if run["verdict"] == "oom" else 0), f"exit {code}, {run['verdict']}"
    assert without_asked(api.run(file, samples=0)) == without_asked(run), "the Python package says something else"
    if not grpo:  # which is not served
        assert without_asked(server.run(file)) == without_asked(run), "serve says something else"
    said("memory", file)
    # A key that is set to what it is.
    _, table = said("sweep", file, "--vary", "strategy.expandable_segments=true,false", codes=(0, 1, 2))
    for point in () if grpo else table["points"]:
        _, own = said("run", file, "--samples", "0", "--set", f"strategy.expandable_segments={str(point['strategy.expandable_segments']).lower()}",
                      codes=(0, 1, 2))
        if point["feasible"]:
            for key in FIGURES:
                assert same(point[key], own[key]), f"a sweep says {key} {point[key]}, a run {own[key]}"
    if grpo or not plans:
        return
    _, plan = said("plan", file, "--samples", "0", "--top", "1", "--where", "job.micro_batch <= 2", codes=(0, 1, 2))
    for best in plan["best"] if isinstance(plan, dict) else ():
        _, own = said("run", file, "--samples", "0", *(word for each in best["settings"] for word in ("--set", each)))
        for key in FIGURES:
            assert same(best[key], own[key]), f"a plan says {key} {best[key]}, a run {own[key]}"


os.makedirs(folder, exist_ok=True)
for old in pathlib.Path(folder).glob("*.yaml"):
    old.unlink()
subprocess.run([random_scenarios, count, seed, folder, "1"], stdout=subprocess.DEVNULL, check=False)
files = sorted(str(path) for path in pathlib.Path(folder).glob("*.yaml"))
wrong = 0 if files else 1
with Server() as server:
    for number, file in enumerate(files):
        try:
            check(file, server, number % 8 == 0)
        except (AssertionError, api.Error, subprocess.TimeoutExpired) as complaint:
            wrong += 1
            print(f"{file}: {complaint}\n{pathlib.Path(file).read_text()}", flush=True)
print(f"{len(files)} scenarios, {wrong} with more than one answer")
sys.exit(1 if wrong else 0)
