"""check_progress.py STEPSIM: progress is drawn on a terminal, wiped at the end, and nowhere else; answers do not depend on it,
nor on the number of workers. It says how long a sweep takes early on."""

import os
import pty
import re
import subprocess
import sys

stepsim = sys.argv[1]
words = ["explain", "mpt7b-zero2", "llama32-3b-sft-zero3", "--replays", "1", "--samples", "1", "--json"]


def on_terminal(command):
    leader, follower = pty.openpty()
    study = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower)
    os.close(follower)
    answer = study.stdout.read()
    drawn = b""
    while True:
        try:
            more = os.read(leader, 65536)
        except OSError:  # nobody holds the other end
            break
        if not more:
            break
        drawn += more
    assert study.wait() == 0
    return answer, drawn.decode()


answer, drawn = on_terminal([stepsim, *words, "--workers", "2"])
assert drawn.startswith("\rreplays [") and "#" in drawn and " of " in drawn, drawn[:200]
assert drawn.endswith("\r\033[K"), f"the line stays: {drawn[-80:]!r}"
assert all(len(line) < 80 for line in drawn.split("\r")), "the line is wider than a terminal"
piped = subprocess.run([stepsim, *words, "--workers", "1"], capture_output=True, check=True)
assert piped.stderr == b"", piped.stderr
assert piped.stdout == answer, "one worker gives another answer"

# The length of a long sweep is known long before a hundredth of it is done.
leader, follower = pty.openpty()
sweep = subprocess.Popen([stepsim, "sweep", "llama32-3b-sft-zero3", "-j", "1",
                          "--vary", "job.tokens=1e9:1.3e9:1e6", "--vary", "stack.unexplained=1:1.3:0.001"],
                         stdout=subprocess.PIPE, stderr=follower)
os.close(follower)
drawn = ""
while " left" not in drawn:
    drawn += os.read(leader, 65536).decode()
sweep.kill()
sweep.wait()
done, points = re.search(r"(\d+) of (\d+), [0-9.]+ \w+ left", drawn).groups()
assert 100 * int(done) < int(points), drawn
print("the same")
