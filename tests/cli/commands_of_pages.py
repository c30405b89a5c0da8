"""commands_of_pages.py STEPSIM ROOT FOLDER: every command line in a code block of a page runs.

Blocks of consoles are documented.py's, and docs/calibrate.md is followed by follow_calibrate.py. The files that a page takes for
granted stand in FOLDER: examples of the tests, and the YAML blocks of the pages themselves.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

stepsim, root, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
shutil.rmtree(folder, ignore_errors=True)
(folder / "bin").mkdir(parents=True)
(folder / "bin/stepsim").symlink_to(stepsim)
os.symlink(stepsim, folder / "stepsim")
os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"


def block_of(page, first):
    """The YAML block of a page that begins with these words."""
    return re.search(rf"```yaml\n({re.escape(first)}.*?)```", (root / "docs" / page).read_text(), re.S).group(1)


tests = root / "tests/cli"
for name in ("a.yaml", "b.yaml", "my.yaml"):
    shutil.copy(tests / "tiny.yaml", folder / name)
for name in ("train.yaml", "qwen3-sft.yaml", "qwen3-sft.8xMI300.yaml"):
    shutil.copy(tests / "axolotl/small-sft.8xMI300.yaml", folder / name)
for name in ("small_zero3.json", "zero3.json", "zero3_bf16.json"):
    shutil.copy(tests / "axolotl/small_zero3.json", folder / name)
for name in ("lora8b.yml", "other.yml", "next.yml"):
    shutil.copy(tests / "axolotl/small-sft.8xMI300.yaml", folder / name)
for name in ("train.log", "other.log"):
    (folder / name).write_text("120/1000 [04:00<30:00,  2.00s/it]\n")
(folder / "smi.csv").write_text("memory.used [MiB], utilization.gpu [%]\n30000 MiB, 80 %\n")
(folder / "nccl.log").write_text("NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM\n")
shutil.copy(tests / "scripts/pair.openrlhf.sh", folder / "train.sh")
(folder / "runs").mkdir()
(folder / "my-claims.yaml").write_text(block_of("claims.md", "claims:"))
(folder / "scaling.yaml").write_text(block_of("sweeps.md", "# stepsim sweep"))
subprocess.run([stepsim, "run", "a.yaml", "-o", "step.h5"], cwd=folder, check=True, stdout=subprocess.DEVNULL)

wrong, count = 0, 0
for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
    if page.name in ("calibrate.md", "json.md", "keys.md"):
        continue
    inside = None
    for number, line in enumerate(page.read_text().split("\n"), 1):
        if line.startswith("```"):
            inside = None if inside else line
            continue
        if inside in (None, "```console") or not re.match(r"(\./)?stepsim ", line):
            continue
        # What a page says of four machines is done by one, shard after shard.
        for shard in range(1, 5 if "--shard 1/4" in line else 2):
            word = line.replace("--shard 1/4", f"--shard {shard}/4")
            if " serve" in word:  # until somebody ends it, and not at a port that others may have
                word = "timeout --preserve-status -s INT 2 " + re.sub(r"serve( \w+)?", r"serve\1 --port 0", re.sub(r"--port \d+", "", word), count=1)
            done = subprocess.run(["bash", "-c", word], cwd=folder, capture_output=True, text=True)
            count += 1
            if done.returncode not in (0, 1):
                print(f"{page.relative_to(root)}:{number}: exit {done.returncode}: {line}\n{done.stderr}")
                wrong += 1
print(f"{wrong} of {count} command lines fail" if wrong else f"{count} command lines run")
sys.exit(wrong > 0 or count == 0)
