"""check_ended.py STEPSIM OUT: a study that is ended, however that is done, takes its workers along and leaves no file."""

import os
import shutil
import signal
import subprocess
import sys
import time

stepsim, out = sys.argv[1:]
studies = {
    "explain": ["explain", "qwen3-30b-sft-zero3", "qwen3-30b-sft-zero2moe", "--workers", "3"],
    "check": ["check", "--workers", "3"],
    "report": ["report", "qwen3-30b-sft-zero3", "qwen3-30b-sft-zero2moe", "-o", "page.html"],
}


def alive(session):
    """Processes of the session that still run: all that the study started are in it."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                words = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue  # ended meanwhile
        if int(words[3]) == session and words[0] != "Z":
            found.append(int(name))
    return found


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


for name, words in studies.items():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        folder = os.path.join(out, f"{name}-{number.name}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        study = subprocess.Popen([stepsim, *words], cwd=folder, start_new_session=True, env=os.environ | {"TMPDIR": folder},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert wait_for(lambda: len(alive(study.pid)) > 2, 20), f"{name} asked no workers"
        time.sleep(0.1)
        os.kill(study.pid, number)  # it alone: its workers have to notice
        told = study.communicate(timeout=10)[1].decode()
        assert study.returncode == -number, f"{name} after {number.name}: {study.returncode}"
        assert told == "", told
        assert wait_for(lambda: not alive(study.pid), 2), f"{name} after {number.name} leaves {alive(study.pid)}"
        assert os.listdir(folder) == [], f"{name} after {number.name} leaves {os.listdir(folder)}"
print("nothing is left")
