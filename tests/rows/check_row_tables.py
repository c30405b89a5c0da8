"""check_row_tables.py quick|slow STEPSIM SOURCE FOLDER: tables of published runs are predicted, exported and held against what was recorded.

STEPSIM_PARTS names row_parts, the program that engines and weight syncs by themselves are asked of."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

speed, stepsim, source, folder = sys.argv[1], *map(os.path.abspath, sys.argv[2:5])
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
os.chdir(folder)
measured = pathlib.Path(source, "scenarios/measured")
environment = {**os.environ, "STEPSIM": stepsim}


def ask(*words, code=0, before="", out=True):
    """Returns what is printed, of errors or else of the answer."""
    words = [sys.executable, "-B", f"{source}/measure/rows.py", *map(str, words)]
    done = subprocess.run(["bash", "-c", f'{before} exec "$@"', "bash", *words], capture_output=True, text=True, env=environment)
    if done.returncode != code:
        sys.exit(f"line {sys._getframe(1).f_lineno}: {words[3:]}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if out else done.stderr


def expect(pattern, text):
    if not re.search(pattern, text, re.S):
        sys.exit(f"line {sys._getframe(1).f_lineno}: no {pattern} in\n{text}")


def write(name, *lines):
    pathlib.Path(name).write_text("\n".join(lines) + "\n")
    return name


def some(table, name, pattern):
    """Writes the rows of a table whose lines begin so."""
    head, *lines = (measured / table).read_text().splitlines()
    return write(name, head, *(line for line in lines if re.match(pattern, line)))


def quick():
    heads = "id,model,stack,cluster.node,cluster.gpus_per_node,job.sequence,job.micro_batch"
    run = "llama-3.1-8b,fsdp2-eager,h100-8,2,2048,1"
    table = write("a.csv", "id,hardware,stack,cluster.node,not_expressed,step_s", "a,H100,,,,1", "b,H100,,,no stack of it,1", "c,H100,trl,h100-9,,1")
    expect("not predicted +what is missing\n.*\na +a scenario: in a column .*\nb +no stack of it\nc +.*h100-9.*did you mean.*0 of 3 rows are predicted: nothing",
           ask(table, code=1))
    table = write("a.csv", f"{heads},family,taken,step_s", f"a/1,{run},some,no accumulation | a guess,1", f"b,{run},some,no accumulation,1")
    expect("assumed +rows +first row\n.*no accumulation +2 +a/1\na guess +1 +a/1\n.*2 of 2 rows are predicted; errors", ask(table, "--export", "rows"))
    expect("^# assumed: no accumulation\n# assumed: a guess\nname: \"a/1\"\nfamily: \"some\"\n.*node: h100-8\n", pathlib.Path("rows/a-1.yaml").read_text())
    told = json.loads(ask(table, "--json", "--samples", 4))
    again = json.loads(subprocess.run([stepsim, "run", "rows/b.yaml", "--json", "--samples", "4", "--engine", "own"], capture_output=True, text=True, check=True).stdout)
    steps = {each["id"]: each for each in told["rows"] if each["metric"] == "step_s"}
    if steps["b"]["predicted"] != again["step_time_s"] or len(told["draws"]) != 2 or not steps["b"]["interval"][0] < steps["b"]["interval"][1]:
        sys.exit(f"{told['rows']}: not what the exported row takes, {again['step_time_s']}")
    # One rotten row spoils no table, and one whose run dies is not one that lacks data.
    expect("not predicted .*\nhuge +.*\n.*1 of 2 rows are", ask(write("a.csv", f"{heads},step_s", f"a,{run},1", f"huge,{run.replace('2048', '1e9')},1")))
    pipeline = "megatron,h100-8,qwen3-0.6b,1024,gpipe,2,1,none"
    table = write("a.csv", "id,stack,cluster.node,model,job.sequence,strategy.pipeline_parallel.schedule,strategy.pipeline_parallel.size,strategy.zero,"
                  "strategy.checkpointing,job.gradient_accumulation,step_s", f"good,{pipeline},8,0.1", f"long,{pipeline},4096,0.1")
    expect("no answer +why\n[- ]+\nlong +it ended without an answer .signal 9: Killed.\n.*1 of 2 rows are predicted",
           ask(table, "--record", "recorded.csv", code=3, before="ulimit -c 0; ulimit -t 2;"))
    if os.path.exists("recorded.csv"):
        sys.exit("errors without a row are recorded")
    # Engines, GRPO steps and others in one question; what was recorded is held against itself, and against less.
    engines = (measured / "engines/inference.csv").read_text().splitlines()[:3]
    jobs = (measured / "grpo/grpo.csv").read_text().splitlines()[:2]
    tables = write("engines.csv", *engines), write("jobs.csv", *jobs), some("steps/dense_fsdp_h100.csv", "steps.csv", "kf-cv-70b-tp4pp4,|mlm-530b-full,")
    told = json.loads(ask(*tables, "--samples", 2, "--json"))
    if len(told["draws"]) != 4 or not all(each["interval_width"] > 0 for each in told["families"]):
        sys.exit(f"{told['families']}: not each kind of row has an interval")
    expect("kf-cv-70b-tp4pp4 +step_s +4.29 .*", ask(*tables, "--record", "recorded.csv"))
    with open("recorded.csv", "a") as more:
        more.write("grpo somewhere,1,2.00,2.00,0,0.00,1,1\n")
    expect("nothing changed since recorded.csv\nfamilies of tables that were not given, not compared: 3\n", ask("steps.csv", "--recorded", "recorded.csv"))
    text = pathlib.Path("recorded.csv").read_text()
    pathlib.Path("recorded.csv").write_text(re.sub("(\ndense [^,]*,1),[^,]*", r"\1,0.01", text))
    expect("worse\n.*if that is meant: stepsim-rows ... --record recorded.csv", ask("steps.csv", "--recorded", "recorded.csv", code=1))
    expect("a +tp: 5 neither divides the 8 key-value heads of qwen3-14b nor is a multiple of them\n", ask(write("a.csv", "id,load,output_tok_s",
           'a,"{model: qwen3-14b, node: h100-8, tensor_parallel: 5, prompt: 100, answer: 100, requests: 10}",1000'), code=1))
    # What the tables of heads and of questions say.
    expect("\nswift|vision a100 +4 ", ask(measured / "tasks"))
    told = ask(measured / "outcomes/asked.csv")
    expect("\nchance from +rows +mean chance +ran +share\n.*asked +known +answered +fits in *\n.* wrong\n[^\n]* right\n.*\n2[3-7] of 27 questions are answered right\n",
           told)
    expect("anchored on one row in turn .*\nall +8 .*%", ask(pathlib.Path(source, "measure/users/answer.csv"), "--anchored", "--samples", 4))
    expect("holds no table", ask(pathlib.Path(source, "cmake"), code=2, out=False))
    expect("nowhere.csv: cannot be read", ask("steps.csv", "--recorded", "nowhere.csv", code=2, out=False))
    expect("--recorded: prints a table; leave out --json", ask("steps.csv", "--recorded", "nowhere.csv", "--json", code=2, out=False))


def slow():
    """What changes a prediction changes recorded.csv, too: it is written anew in the same commit, and the diff shows what got worse."""
    told = ask(measured / "steps", measured / "grpo", measured / "engines", "--recorded", measured / "recorded.csv", "--export", "rows")
    expect("nothing changed since .*recorded.csv", told)
    expect("grpo in turn h100-sxm +nemorl-v0.4-1 +step_s +97.7.*nemorl-v0.4-5 +step_s +506.*grpo sync h20-141 +sync-ce-dsv31 +sync_s +10.19", told)
    expect("engine h200 fp8 +trtllm-llama-3.3-70b-h200-128-128 +output_tok_s +3803", told)
    expect("amd-te79-8b-bf16 +the sequence length\n", told)
    # What a row became changes nothing when somebody types all that its recipes and stack fill in.
    for place in sorted(pathlib.Path("rows").glob("*.yaml"))[::20]:
        resolved = [subprocess.run([stepsim, "show", path, "--yaml"], capture_output=True, text=True, check=True).stdout
                    for path in (place, write("typed.yaml", subprocess.run([stepsim, "show", place, "--yaml"], capture_output=True, text=True, check=True).stdout))]
        if resolved[0] != resolved[1]:
            sys.exit(f"{place}: is another scenario when all of it is typed")


quick() if speed == "quick" else slow()
print("tables are predicted as they should be")
