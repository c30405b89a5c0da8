"""check_printable.py STEPSIM DATA FOLDER: whatever a file, a name or a word holds, a terminal does nothing but show it.

Puts sequences that would set a title, clear the screen, turn the direction of writing or hide letters into every place that messages, tables,
tables for machines and pages quote, and looks at each byte that comes out by Python's own table of characters. Exit code 1: one got through.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unicodedata

stepsim, data = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
folder = pathlib.Path(sys.argv[3])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)


def as_json(value):  # YAML has no such letter outside of an escape
    return json.dumps(value).replace("\x7f", "\\u007f")


RAW = "\x1b]0;t\x07\x1b[2J\x7f\x9b\u202e\u2066\u200f\u061c\u200b\u2060\U000e0041"
SHORT = RAW[:-1]  # as it may stand in JSON
QUOTED = as_json(SHORT)[1:-1]  # as YAML, JSON and TOML write it in quotes
SET = "\u202e\u2066\u200f\u061c\u200b\u2060"  # as it may stand in a value on the command line, which is YAML
DIRECTED = "title \u202e\u2066\u200f\u200b"  # no control characters: may be in a title
ROWS = [sys.executable, "-B", str(pathlib.Path(__file__).parents[2] / "measure/rows.py")]
TINY = pathlib.Path(__file__).with_name("tiny.yaml").read_text()
NAMES = "id,hardware,gpus,framework,model,seq_len,step_s"
AXOLOTL = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nmicro_batch_size: 1\ndatasets: [{path: x, type: alpaca}]\n"
LLAMA_FACTORY = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: full\ncutoff_len: 2048\n"
TRL = 'from trl import SFTConfig, SFTTrainer\nSFTTrainer(model="Qwen/Qwen2.5-7B", args=SFTConfig(optim="adamw_torch", max_length=1024))\n'
TITAN = '[job]\ndump_folder = "out"\n[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 2048\n'


TITLED = TINY.replace("name: tiny", f"name: {DIRECTED}", 1)


def key_in(text):
    return f'{text}"{QUOTED}": 1\n'


CASES = {  # name: files, words
    "key of a scenario": ({"a.yaml": key_in(TINY)}, ["run", "a.yaml"]),
    "key of a block": ({"a.yaml": TINY}, ["run", "a.yaml", "--set", f'strategy.zero_optimization={{"{QUOTED}": 1}}']),
    "mistakes without end": ({"a.yaml": TINY + "".join(f'"{i}{QUOTED}": 1\n' for i in range(300))}, ["run", "a.yaml"]),
    "title": ({"a.yaml": TITLED}, ["run", "a.yaml", "--samples", "0", "--faster", "0"]),
    "title with control characters": ({"a.yaml": TINY.replace("name: tiny", f'name: "{QUOTED}"', 1)}, ["run", "a.yaml"]),
    "title of two": ({"a.yaml": TITLED}, ["explain", "a.yaml", "--set", "job.micro_batch=2", "--samples", "0", "--replays", "1"]),
    "title, validated": ({"a.yaml": TITLED}, ["validate", "a.yaml"]),
    "key of DeepSpeed's file": ({"a.json": as_json({"train_micro_batch_size_per_gpu": 1, SHORT: 1})}, ["run", "a.json", "--model", "llama-3.1-8b"]),
    "value of DeepSpeed's file": ({"a.json": as_json({"zero_optimization": {"stage": SHORT}})}, ["run", "a.json"]),
    "text of DeepSpeed's file": ({"a.json": as_json({"optimizer": {"type": SHORT}})}, ["run", "a.json"]),
    "no JSON": ({"a.json": b'{"a": \x1b\x9b\xff}'}, ["run", "a.json"]),
    "no YAML": ({"a.yaml": b"a: [\x1b[2J\xff\xc2\x9b"}, ["run", "a.yaml"]),
    "no TOML": ({"a.toml": b"a = \x1b[2J\xff\n"}, ["run", "a.toml"]),
    "key of TOML": ({"a.toml": f'{TITAN}"{QUOTED}" = 1\n'}, ["run", "a.toml"]),
    "value of TOML": ({"a.toml": TITAN.replace("8B", QUOTED)}, ["run", "a.toml"]),
    "table of TOML": ({"a.toml": f'{TITAN}["{QUOTED}"]\nx = 1\n'}, ["run", "a.toml"]),
    "key of Axolotl": ({"a.yml": key_in(AXOLOTL)}, ["run", "a.yml", "--samples", "0", "--faster", "0"]),
    "model of Axolotl": ({"a.yml": AXOLOTL.replace("Llama-3.1-8B", "x") + f'adapter: "{QUOTED}"\n'}, ["run", "a.yml"]),
    "name of a model": ({"a.yml": AXOLOTL.replace("meta-llama/Llama-3.1-8B", f'"x/{QUOTED}"')}, ["run", "a.yml"]),
    "key of LLaMA-Factory": ({"a.yaml": key_in(LLAMA_FACTORY)}, ["run", "a.yaml", "--samples", "0", "--faster", "0"]),
    "key of Accelerate": ({"a.yaml": key_in("compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"), "b.py": TRL}, ["run", "b.py", "--accelerate", "a.yaml"]),
    "value of Accelerate": ({"a.yaml": f'compute_environment: LOCAL_MACHINE\ndistributed_type: "{QUOTED}"\n', "b.py": TRL}, ["run", "b.py", "--accelerate", "a.yaml"]),
    "key of a claim": ({"a.yaml": key_in("")}, ["check", "a.yaml"]),
    "claim in words": ({"a.yaml": TINY}, ["check", f"A is {RAW} faster than B", "a.yaml", "a.yaml"]),
    "key to vary": ({"a.yaml": TINY}, ["sweep", "a.yaml", "--vary", f"{RAW}=1,2"]),
    "value to vary": ({"a.yaml": TINY}, ["sweep", "a.yaml", "--vary", f"stack={SET},deepspeed-hf", "-o", "table"]),
    "value to vary, for machines": ({"a.yaml": TINY}, ["sweep", "a.yaml", "--vary", f"stack={SET},deepspeed-hf", "--csv"]),
    "file of a sweep": ({"a.yaml": key_in("")}, ["sweep", "a.yaml"]),
    "column of a table": ({"a.csv": f"{NAMES},{RAW}\na,H100-80GB,8,x,none,1024,1,1\n"}, ROWS + ["a.csv"]),
    "cells of a table": ({"a.csv": f"{NAMES}\n{RAW},{RAW},8,{RAW},{RAW},1024,1\n"}, ROWS + ["a.csv"]),
    "number of a table": ({"a.csv": f"{NAMES}\na,H100-80GB,{RAW},x,llama-3.1-8b,1024,1\n"}, ROWS + ["a.csv"]),
    "words of a script": ({"a.sh": f"torchrun --nproc_per_node 8 pretrain_gpt.py --{RAW} 1 --seq-length {RAW} --num-layers 2\n"}, ["run", "a.sh"]),
    "variable of a script": ({"a.sh": f'X="{RAW}"\ndeepspeed train.py --model_name_or_path "$X" --deepspeed "$X"\n'}, ["run", "a.sh"]),
    "no launch in a script": ({"a.sh": f"echo {RAW}\n"}, ["run", "a.sh"]),
    "words of Python": ({"a.py": TRL.replace("adamw_torch", RAW)}, ["run", "a.py"]),
    "lines of a log": ({"a.yaml": TINY, "a.log": f"iteration 1/ 10 | elapsed time per iteration (ms): {RAW} |\n{RAW}\n"}, ["run", "a.yaml", "--beside", "a.log"]),
    "keys of a log": ({"a.yaml": TINY, "a.json": as_json({"log_history": [{RAW: 1}], RAW: 2})}, ["run", "a.yaml", "--beside", "a.json"]),
    "lines of a Slurm job": ({"a.sbatch": f"#!/bin/bash\n#SBATCH --nodes={RAW}\nsrun torchrun pretrain_gpt.py --num-layers 2\n"}, ["run", "a.sbatch"]),
    "model": ({"a.yaml": TINY}, ["run", "a.yaml", "--set", f"model={SET}"]),
    "node": ({"a.yaml": TINY}, ["run", "a.yaml", "--set", f"cluster.node={SET}"]),
    "stack": ({"a.yaml": TINY}, ["run", "a.yaml", "--set", f"stack={SET}"]),
    "number": ({"a.yaml": TINY}, ["run", "a.yaml", "--set", f"strategy.zero={SET}"]),
    "width of a model": ({"a.yaml": TINY}, ["run", "a.yaml", "--set", f'model={{architectures: [LlamaForCausalLM], hidden_size: "{QUOTED}"}}']),
    "key to set": ({"a.yaml": TINY}, ["run", "a.yaml", "--set", f"{RAW}=1"]),
    "option": ({}, ["run", f"--{RAW}"]),
    "command": ({}, [RAW]),
    "option before the command": ({}, [f"--{RAW}", "run"]),
    "entry to show": ({}, ["show", RAW]),
    "list": ({}, ["list", RAW]),
    "message sizes": ({}, ["collective", "all_reduce", "--cluster", "h100-8", "--sizes", RAW]),
    "folder of data": ({}, ["--data", RAW, "list"]),
    "file that is not there": ({}, ["run", f"{RAW}.yaml"]),
    "name of a bad file": ({f"a{RAW}.yaml": key_in(TINY)}, ["run", f"a{RAW}.yaml"]),
    "name of a good file": ({f"a{RAW}.yml": AXOLOTL}, ["run", f"a{RAW}.yml", "--samples", "0"]),
    "name that is no UTF-8": ({b"a\xff\x9b.yaml": key_in(TINY)}, ["run", b"a\xff\x9b.yaml"]),
    "name with lines": ({"a\nstepsim: fine.yaml": key_in(TINY)}, ["run", "a\nstepsim: fine.yaml"]),
    "value with lines": ({"a.yaml": TINY}, ["run", "a.yaml", "--set", 'stack="x\\nstepsim: fine"']),
    "output that cannot be": ({"a.yaml": TINY}, ["run", "a.yaml", "-o", f"none/{RAW}.h5"]),
    "entry of the catalogue": ({"d/topology/gpus/a.yaml": f'like: h100-sxm\n"{QUOTED}": 1\n'}, ["--data", "d", "--data", data, "show", "a"]),
    "name of an entry": ({f"d/topology/nodes/a{DIRECTED}.yaml": "like: h100-8\n"}, ["--data", "d", "--data", data, "list", "nodes"]),
    "model's own file": ({"m/config.json": as_json({"architectures": [SHORT], SHORT: 1}), "a.yaml": TINY}, ["run", "a.yaml", "--set", "model=m"]),
    "imported": ({"a.yml": AXOLOTL.replace("meta-llama/Llama-3.1-8B", f'"x/Llama-3.1-8B{QUOTED}"')}, ["import", "a.yml"]),
    "as YAML": ({"a.yaml": TITLED}, ["show", "a.yaml", "--yaml"]),
    "resolved": ({"a.yaml": TITLED}, ["show", "a.yaml"]),
    "differences": ({"a.yaml": TITLED, "b.yaml": TINY.replace("64", "128")}, ["diff", "a.yaml", "b.yaml", "--set", f"model={SET}"]),
    "run's file": ({"a.yaml": TITLED}, ["run", "a.yaml", "--samples", "0", "--faster", "0", "-o", "a.h5"]),
    "names in a run's file": (None, ["explain", "run's file/a.h5", "--set", "job.micro_batch=2", "--samples", "0", "--replays", "1"]),
    "page of a run's file": (None, ["report", "run's file/a.h5", "-o", "page.html"]),
    "run's file with bytes of another": ({"a.h5": b"\x89HDF\r\n\x1a\n\x1b[2J\xff"}, ["report", "a.h5", "-o", "page.html"]),
}


def unseen(text):
    return [char for char in text if char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def look_at(name, what, said, problems):
    try:
        found = unseen(said.decode())
    except UnicodeDecodeError as error:
        found = [str(error)]
    if found:
        problems.append(f"{name}: {what} holds {sorted(set(found))!a}: {said[:300]!a}")


def main():
    problems, quoted = [], 0
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm", "LC_ALL": "C.UTF-8", "STEPSIM": stepsim}
    for name, (files, words) in CASES.items():
        place = folder if files is None else folder / name
        for file, content in (files or {}).items():
            path = os.fsencode(place) + b"/" + os.fsencode(file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(content if isinstance(content, bytes) else content.encode())
        place.mkdir(exist_ok=True)
        front = [] if "--data" in words or name == "option before the command" else ["--data", data]
        whole = [*words[:3], "--data", data, *words[3:]] if words[:3] == ROWS else [stepsim, *front, *words]
        done = subprocess.run(whole, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        if done.returncode not in (0, 1, 2):
            problems.append(f"{name}: ends with {done.returncode}: {done.stderr!a}")
        for what, said in (("output", done.stdout), ("error", done.stderr)):
            look_at(name, what, said, problems)
        quoted += b"\\u202e" in done.stdout + done.stderr
        if "lines" in name and any(line.startswith(b"stepsim: fine") for line in done.stderr.splitlines()):
            problems.append(f"{name}: {done.stderr!a} has a line of the file's own")
        for file in [*place.glob("*.csv"), *place.glob("*.html")]:
            if file.name not in (files or {}):
                look_at(name, file.name, file.read_bytes(), problems)
    # Machines get the text itself, in letters that can be seen.
    title = "title/a.yaml"
    done = subprocess.run([stepsim, "--data", data, "run", title, "--samples", "0", "--faster", "0", "--json"], cwd=folder, env=environment, capture_output=True, check=True)
    look_at("title", "JSON", done.stdout, problems)
    if DIRECTED not in json.dumps(json.loads(done.stdout), ensure_ascii=False):
        problems.append("title: JSON has another text")
    if quoted < 45:
        problems.append(f"only {quoted} of {len(CASES)} places quote what they were given: the others test nothing")
    print("\n".join(problems) or f"{len(CASES)} places, {quoted} of them quoted")
    return 1 if problems else 0


sys.exit(main())
