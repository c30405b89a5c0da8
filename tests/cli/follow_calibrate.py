"""follow_calibrate.py STEPSIM SOURCE FOLDER: does what docs/calibrate.md says, on a machine whose constants are known.

What nccl-tests would print is made from a prediction in which the launch and the efficiency of the library are other ones
than the catalogue's; the fitted entry must have these.
"""
import json
import os
import re
import shutil
import subprocess
import sys

stepsim, source, folder = sys.argv[1:]
page, fit = f"{source}/docs/calibrate.md", f"{source}/measure/fit.py"
launch, efficiency = 7e-6, 0.945  # the catalogue: 4.8 us and 0.98


def run(*words):
    done = subprocess.run([stepsim, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def printed_by_nccl_tests(collective):
    answer = json.loads(run("--data", "planted", "collective", collective, "--cluster", "h100-8", "--sizes", "64KiB:1GiB", "--json"))
    lines = [f"# Collective test starting: {collective}_perf", "# nThread 1 nGpus 8 minBytes 65536 maxBytes 1073741824"]
    lines += [f"#  Rank {rank} Group 0 Pid 1 on node-1 device {rank} [0000:0{rank}:00] NVIDIA H100 80GB HBM3" for rank in range(8)]
    lines += ["#  out-of-place in-place", "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong"]
    for row in answer["rows"]:
        time = row["time_s"] * 1e6
        lines.append(f"  {row['bytes']} {row['bytes'] // 4} float sum -1 {time:.2f} 1 1 0 {time:.2f} 1 1 0")
    return "\n".join(lines) + "\n"


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(os.path.join(folder, "planted/topology/nodes"))
os.chdir(folder)
with open("planted/topology/nodes/h100-8.yaml", "w") as entry:
    entry.write(f"""name: h100-8
like: h100-8
title: as planted
collectives:
  launch: {{value: {launch * 1e6} us, low: 1 us, high: 20 us, grade: measured, source: a test}}
  protocols:
    - name: simple
      efficiency: {{value: {efficiency}, low: 0.5, high: 1, grade: measured, source: a test}}
""")
for collective in ("all_reduce", "all_gather"):
    with open(collective + ".txt", "w") as output:
        output.write(printed_by_nccl_tests(collective))

commands = [line for block in re.findall(r"```sh\n(.*?)```", open(page).read(), re.S) for line in block.splitlines()]
followed = [line for line in commands if not re.match(r"\w+_perf ", line)]
if len(followed) < 6:
    sys.exit(f"{page} has only these commands: {followed}")
for line in followed:
    done = subprocess.run(["bash", "-ec", f'stepsim() {{ "{stepsim}" "$@"; }}; stepsim-fit() {{ STEPSIM="{stepsim}" "{fit}" "$@"; }}; {line}'],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{line}: {done.stdout}{done.stderr}")

shown = json.loads(run("--data", "mine", "show", "my-h100", "--json"))
fitted = {}
for each in shown["constants"]:
    fitted[each["name"]] = each["value"]
for name, planted in (("collectives.launch", launch), ("collectives.protocols.simple.efficiency", efficiency)):
    value = next((v for k, v in fitted.items() if k.endswith(name)), None)
    if value is None or abs(value / planted - 1) > 0.1:
        sys.exit(f"{name}: planted {planted}, fitted {value}")
