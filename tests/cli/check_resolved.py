"""Usage: check_resolved.py STEPSIM FOLDER. The scenario that stands in a result of search, check and validate can be run
again, and gives the figure of that result."""
import json
import os
import subprocess
import sys

stepsim, folder = sys.argv[1], sys.argv[2]
os.makedirs(folder, exist_ok=True)


def answer(*words):
    done = subprocess.run([stepsim, *words, "--json"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def run(scenario):
    path = os.path.join(folder, "again.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(scenario)
    return answer("run", path, "--samples", "0")


def same(what, one, other):
    assert one == other, f"{what}: {one} and {other}"


tiny = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tiny.yaml")

search = answer("sweep", tiny, "--set", "strategy.zero=2", "--vary", "job.micro_batch=1,2,4", "--find", "max job.micro_batch such that fits")
same("what a search sets", search["scenario"]["set"], ["strategy.zero=2", "job.micro_batch=" + search["found"]])
same("search", run(search["scenario"]["resolved"])["step_time_s"], search["points"][-1]["step_time_s"])

claims = os.path.join(folder, "claims.yaml")
with open(claims, "w", encoding="utf-8") as file:
    file.write(f"""claims:
  - id: a
    text: a step takes time
    scenarios: {{x: {{from: {tiny}, set: {{job.micro_batch: 2}}}}}}
    holds: [{{value: x.step_time, at_least: 1 us}}]
    vary: [{{name: over more ranks, of: [x], set: {{cluster.nodes: 2}}}}]
""")
claim = answer("check", claims, "--draws", "1")["claims"][0]
x = claim["scenarios"][0]
same("name in a claim", x["name"], "x")
same("what a claim sets", x["asked"]["scenario"]["set"], ["job.micro_batch=2"])
same("what conditions set", [each["set"] for each in claim["conditions"]], [[], ["x: cluster.nodes=2"]])
same("check", run(x["asked"]["scenario"]["resolved"])["step_time_s"], claim["parts"][0]["value"])

validation = answer("validate", tiny)
same("runs of validate", [each["id"] for each in validation["scenarios"]], ["tiny"])
same("validate", run(validation["scenarios"][0]["asked"]["scenario"]["resolved"])["step_time_s"], validation["rows"][0]["predicted"])
