"""check_mcp.py STEPSIM ROOT OUT quick|slow: a conversation with `stepsim mcp`, as a coding agent has it, and with lines that are hostile.

quick: it answers, refuses and ends. slow: cancellation, progress, answers held against their schemas, and the routes of `serve` beside them."""

import json
import os
import shutil
import subprocess
import sys
import time

stepsim, root, out, how = os.path.abspath(sys.argv[1]), *sys.argv[2:]
shutil.rmtree(out, ignore_errors=True)
os.makedirs(out)
shutil.copytree(os.path.join(root, "tests/cli/axolotl"), os.path.join(out, "runs"))
file = "small-sft.8xMI300.yaml"


class Agent:
    def __init__(self, *words):
        self.process = subprocess.Popen([stepsim, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=os.path.join(out, "runs"))
        self.last = 0

    def send(self, line):
        self.process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), line
        told = json.loads(line)
        assert told["jsonrpc"] == "2.0", told
        return told

    def ask(self, method, params=None):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}})
        told = self.hear()
        assert told["id"] == self.last, told
        return told

    def call(self, tool, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert [part["type"] for part in result["content"]] == ["text"], result
        return result["content"][0]["text"], result["isError"]

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
            return children.read().split()

    def end(self):
        self.process.stdin.close()
        rest, complaint = self.process.stdout.read(), self.process.stderr.read()
        assert self.process.wait(timeout=20) == 0 and rest == b"", (self.process.returncode, rest)
        return complaint.decode()


def greet(agent):
    told = agent.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})["result"]
    assert told["protocolVersion"] == "2025-06-18" and told["serverInfo"]["name"] == "stepsim", told
    agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return agent


def landlock():
    return "Landlock" not in greet(Agent()).end()


def check_conversation():
    agent = greet(Agent())
    tools = {tool["name"]: tool["inputSchema"] for tool in agent.ask("tools/list")["result"]["tools"]}
    assert list(tools) == ["run", "memory", "explain", "plan", "sweep", "check", "anchor", "diagnose", "show", "list"], tools
    # What a schema names the command takes, and the other way round.
    for name, schema in tools.items():
        said = subprocess.run([stepsim, name, "--help"], check=True, capture_output=True, text=True).stdout
        for option, facts in schema["properties"].items():
            assert f"--{option} " in said.replace("\n", " ") or option in schema["required"] + ["full", "b", "claims", "kind"], (name, option)
            assert facts["description"], (name, option)
    text, failed = agent.call("run", scenario=file, gpu="h100")
    lines = text.split("\n")
    assert not failed and len(text) < 2000 and "usable: fits" in lines[0] and lines[1].startswith("taken: ") and lines[2].startswith("not modelled: ") and "faster, each alone" in text, text
    text, failed = agent.call("memory", scenario=file, gpu="4090", set=["job.micro_batch=64"])
    assert not failed and "does not fit" in text.split("\n")[0] and "\ntaken: " in text, text
    told, failed = agent.call("run", scenario=file, gpu="h100", samples=0, full=True)
    ran = subprocess.run([stepsim, "run", file, "--gpu", "h100", "--samples", "0", "--json"], check=True, capture_output=True, text=True, cwd=os.path.join(out, "runs")).stdout
    assert not failed and told == ran
    return agent


def check_refusals(agent, shut_in):
    os.symlink("/etc/hostname", os.path.join(out, "runs/link.yaml"))
    with open(os.path.join(out, "runs/leads-out.yaml"), "w") as leads:
        leads.write("base_model: /etc\nsequence_len: 512\nmicro_batch_size: 1\n")
    for outside in ("/etc/passwd", "../../secret.yaml", out + "/runs/../../x"):
        text, failed = agent.call("run", scenario=outside)
        assert failed and f"what is in {os.path.realpath(out)}/runs may be read" in text, text
    if shut_in:
        for inside in ("link.yaml", "leads-out.yaml"):
            text, failed = agent.call("run", scenario=inside, gpu="h100")
            assert failed and "Permission denied" in text, text
    text, failed = agent.call("run", scenario=file, gup="h100")
    assert failed and text == 'unknown option --gup (did you mean "--gpu"?)', text
    text, failed = agent.call("run", scenario=file, output="x.h5")
    assert failed and text == "output: is not taken here", text
    # What is heard is no log: the question has an input of its own.
    text, failed = agent.call("anchor", scenario=file, gpu="h100", log=["-"])
    assert failed and text.startswith("-: "), text
    assert agent.ask("resources/read", {"uri": "stepsim://docs/no.md"})["error"]["code"] == -32002
    assert agent.ask("nothing")["error"]["code"] == -32601


def check_hostile(agent):
    for line in (b"{", b"\0" * 4096, bytes(range(11, 256)), b"[" * 100000, b'{"a":' * 5000, b"\xff\xfe{}", b"x" * (3 << 20), b'{"a": &a [*a]}', b'"' + b"\\u0000" * 100 + b'"',
                 b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run\\n"}}'):
        agent.send(line)
        assert "error" in agent.hear(), line[:60]
    agent.send(b'{"jsonrpc": "2.0", "id": "\\ud83d\\ude00", "method": "ping"}')
    agent.hear()
    assert agent.ask("ping")["result"] == {}


def check_end():
    """The end of the input ends it, when what was asked is answered; the same questions have the same answers."""
    questions = [{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
                 for number, (name, arguments) in enumerate((("run", {"scenario": file, "gpu": "h100"}), ("list", {"kind": "stacks"}), ("memory", {"scenario": file, "gpu": "a100"})))]
    said = "\n".join(json.dumps(question) for question in questions).encode()
    answers = [subprocess.run([stepsim, "mcp"], input=said, check=True, capture_output=True, cwd=os.path.join(out, "runs")).stdout for _ in range(2)]
    assert answers[0] == answers[1] and [json.loads(line)["id"] for line in answers[0].splitlines()] == [0, 1, 2], answers
    # When nobody reads any more, nobody computes on.
    agent = Agent()
    agent.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sweep", "arguments": {"scenario": "qwen3-30b-sft-zero3", "vary": ["job.micro_batch=1:64"]}}})
    agent.process.stdin.close()
    agent.process.stdout.close()
    agent.process.wait(timeout=10)


def long_question(agent, number, **more):
    agent.send({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                "params": {"name": "sweep", "arguments": {"scenario": "qwen3-30b-sft-zero3", "vary": ["job.micro_batch=1:64"]}, **more}})


def check_cancellation(agent):
    long_question(agent, "long", _meta={"progressToken": 17})
    last = 0
    while last < 3:
        told = agent.hear()
        assert told["method"] == "notifications/progress" and told["params"]["progressToken"] == 17 and told["params"]["progress"] > last, told
        last = told["params"]["progress"]
    long_question(agent, "behind it")
    agent.send({"jsonrpc": "2.0", "id": "now", "method": "ping"})
    while (told := agent.hear()).get("method"):
        pass
    assert told == {"jsonrpc": "2.0", "id": "now", "result": {}}, told  # a ping is answered meanwhile
    begin = time.monotonic()
    for number in ("behind it", "long"):
        agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number, "reason": "enough"}})
    agent.send({"jsonrpc": "2.0", "id": "next", "method": "tools/call", "params": {"name": "list", "arguments": {"kind": "stacks"}}})
    while (told := agent.hear()).get("method"):
        pass
    assert told["id"] == "next" and time.monotonic() < begin + 3, told
    assert agent.children() == [], agent.children()


def complaints(value, schema, place="answer"):
    """Of JSON Schema what the program's schemas use."""
    if "anyOf" in schema:
        tried = [list(complaints(value, one, place)) for one in schema["anyOf"]]
        if all(tried):
            yield from min(tried, key=len)
        return
    kinds = schema.get("type", [])
    of = {"number": (int, float), "boolean": bool, "string": str, "array": list, "object": dict, "null": type(None)}
    if kinds and not any(isinstance(value, of[kind]) and (kind != "number" or not isinstance(value, bool)) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        yield f"{place}: expected {kinds}, found {value!r}"
    for key in schema.get("required", []) if isinstance(value, dict) else []:
        if key not in value:
            yield f"{place}.{key}: is missing"
    if isinstance(value, dict):
        for key, part in value.items():
            if key in schema.get("properties", {}):
                yield from complaints(part, schema["properties"][key], f"{place}.{key}")
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from complaints(part, schema["additionalProperties"], f"{place}.{key}")
            elif "properties" in schema:
                yield f"{place}.{key}: is in no schema"
    if isinstance(value, list):
        for number, part in enumerate(value):
            yield from complaints(part, schema.get("items", {}), f"{place}[{number}]")


def check_schemas(agent):
    questions = (("run", {"scenario": file, "gpu": "h100", "changes": True}), ("memory", {"scenario": file, "gpu": "4090", "set": ["job.micro_batch=64"]}),
                 ("run", {"scenario": "grpo-7b-two-nodes", "samples": 0}), ("explain", {"a": file, "gpu": "h100", "set": ["job.micro_batch=4"], "samples": 0}),
                 ("plan", {"scenario": "llama-3.2-1b", "cluster": "h100-8", "samples": 0}), ("sweep", {"scenario": file, "gpu": "h100", "vary": ["job.micro_batch=1,2"]}),
                 ("check", {"claims": ["A fits", file], "gpu": "h100", "draws": 8}), ("show", {"name": "h100-8"}), ("show", {"name": "llama-3.2-1b"}), ("show", {"name": "serve"}),
                 ("list", {"kind": "stacks"}), ("list", {"kind": "keys"}))
    document = json.loads(subprocess.run([stepsim, "list", "--openapi"], check=True, capture_output=True).stdout)
    assert document["openapi"] == "3.1.0"
    schemas = document["components"]["schemas"]
    for tool in agent.ask("tools/list")["result"]["tools"]:
        body = document["paths"][f"/api/v1/{tool['name']}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        wanted = {key: facts for key, facts in tool["inputSchema"]["properties"].items() if key != "full"}
        assert {key: facts for key, facts in body["properties"].items() if key != "files"} == wanted, tool["name"]
    for name, arguments in questions:
        text, failed = agent.call(name, **arguments, full=True)
        assert not failed, text
        told = json.loads(text)
        schema = json.loads(agent.ask("resources/read", {"uri": f"stepsim://schemas/{told['result']}"})["result"]["contents"][0]["text"])
        assert schema == schemas[told["result"]], told["result"]
        answers = document["paths"][f"/api/v1/{name}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"]
        assert {"$ref": f"#/components/schemas/{told['result']}"} in answers, answers
        found = list(complaints(told, schema))
        assert not found, (name, found[:5])


agent = check_conversation()
shut_in = landlock()
check_refusals(agent, shut_in)
check_hostile(agent)
if how == "slow":
    check_cancellation(agent)
    check_schemas(agent)
complaint = agent.end()
assert complaint == "" or not shut_in, complaint
check_end()
print("answered" + ("" if shut_in else "; without Landlock"))
