"""Usage: check_schemas.py STEPSIM docs/json.md. What --json prints has the keys and types that the document says."""
import json
import re
import shlex
import subprocess
import sys

COMMANDS = [
    "run llama32-3b-sft-zero3 --samples 2",
    "run llama32-3b-sft-zero3 --samples 0 --set job.save.every=100 --set job.resume.after=50",
    "run grpo-small --samples 0",
    "memory llama32-3b-sft-zero3 --set job.micro_batch=512",
    "memory grpo-32b-production",
    "explain mpt7b-zero2 llama32-3b-sft-zero3 --replays 1 --samples 0",
    "sweep llama32-3b-sft-zero3 --vary job.micro_batch=1,2 --vary cluster.nodes=1,2 --set cluster.network=roce-mi300x",
    "sweep llama32-3b-sft-zero3 --find 'max job.micro_batch such that fits'",
    "check tests/cli/grpo-claim.yaml --draws 1",
    "validate scenarios/seeds/mpt7b-zero2.yaml scenarios/seeds/mpt7b-zero2-oom.yaml",
    "collective all_reduce --cluster mi300x-8 --sizes 1MiB",
    "collective all_reduce --cluster mi300x-8 --compare scenarios/measured/collectives.csv",
    "kernels",
    "kernels --fit h100-sxm",
    "list stacks",
    "show mi300x",
    "show qwen3-30b-a3b",
    "show llama32-3b-sft-zero3",
    "diff llama32-3b-sft-zero3 --set strategy.zero=2",
    "list keys",
]
FORMS = {"number": (int, float), "true or false": bool, "text": str, "[low, high]": list, "object": dict, "list": list}


def sections(text):
    """Of each heading the rows of its tables: key -> (type, what it is)."""
    found, rows = {}, {}
    for line in text.splitlines():
        if line.startswith("## "):
            rows = found.setdefault(re.sub(r" \(schema \d+\)", "", line[3:]), {})
        elif match := re.match(r"\| `(.+?)` \| (.+?) \| (.*) \|$", line):
            rows[match[1]] = (match[2], match[3])
    return found


def complaints(value, place, rows):
    if isinstance(value, list):
        if place and rows[place][0].startswith("[low, high]"):
            return
        for item in value:
            yield from complaints(item, place + "[]", rows)
        return
    if not isinstance(value, dict):
        return
    any_key = [path for path, (_, what) in rows.items()
               if re.fullmatch(re.escape(place + "." if place else "") + r"[^.\[]+", path) and "one key for each" in what]
    for key, part in value.items():
        path = f"{place}.{key}" if place else key
        known = path if path in rows else any_key[0] if any_key else None
        if known is None:
            yield f"{path}: is not documented"
            continue
        form = rows[known][0]
        kind = next(word for word in FORMS if form.startswith(word))
        if part is None:
            if "or null" not in form:
                yield f"{path}: is null"
        elif known == path and not isinstance(part, FORMS[kind]) \
                and not re.search("of a verdict|a number, a flag or", rows[known][1]):
            yield f"{path}: is {part!r}, not {form}"
        else:
            yield from complaints(part, known, rows)


def main():
    stepsim, document = sys.argv[1:]
    tables = sections(open(document, encoding="utf-8").read())
    wrong = 0
    for command in COMMANDS:
        command = command.replace("grpo-small", "tests/cli/grpo-small.yaml")
        done = subprocess.run(f"{shlex.quote(stepsim)} {command} --json", shell=True, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            print(f"{command}: {done.stderr}")
            wrong += 1
            continue
        answer = json.loads(done.stdout)
        rows = tables["In front of every result"] | tables["What was asked"] | tables[answer["result"]]
        if answer["result"] in ("explain", "diff"):
            for side in ("asked_a", "asked_b"):
                rows[side] = ("object", "")
                rows |= {f"{side}.{path}": row for path, row in tables["What was asked"].items()}
        for complaint in sorted(set(complaints(answer, "", rows))):
            print(f"{command}: {complaint}")
            wrong += 1
    sys.exit(wrong > 0)


main()
