"""check_serve.py STEPSIM OUT quick|slow: a server of `stepsim serve` refuses what is hostile, answers as the commands do, and stays.

quick: a server starts, answers, and ends with exit code 0 when it is asked to. slow: all the rest."""

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

stepsim, out, how = sys.argv[1:]
os.makedirs(out, exist_ok=True)


class Server:
    def __init__(self, *words, port=0):
        self.process = subprocess.Popen([stepsim, "serve", "--port", str(port), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=out)
        self.link = self.process.stdout.readline().strip()
        if port:
            self.port, self.token = port, ""
            return
        said = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", self.link)
        assert said, (self.link, self.process.stderr.read() if not self.link else "")
        self.port, self.token = int(said[1]), said[2]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
        self.process.communicate()

    def ask(self, path, question=None, method=None, token=None, timeout=60, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        body = None if question is None else question if isinstance(question, bytes) else json.dumps(question).encode()
        if body is not None:
            headers = {"Content-Type": "application/json"} | headers
        connection.request(method or ("GET" if body is None else "POST"), f"{path}?token={self.token if token is None else token}", body,
                           {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    def step(self, source="serve", interval=False, files=(), **settings):
        status, text = self.ask("/step", {"a": side(source, settings), "interval": interval, "files": list(files)})
        return status, json.loads(text)

    def raw(self, data, timeout=20):
        """All that comes back to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as connection:
            connection.sendall(data)
            heard = b""
            try:
                while more := connection.recv(1 << 16):
                    heard += more
            except ConnectionResetError:
                pass
        return heard

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1])

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def wait_for_children(self, wanted, seconds=20):
        end = time.monotonic() + seconds
        while bool(self.children()) != wanted:
            assert time.monotonic() < end, f"children: {self.children()}"
            time.sleep(0.01)

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        _, complaint = self.process.communicate(timeout=10)
        assert self.process.returncode == 0 and complaint == "", (self.process.returncode, complaint)


def side(source, settings):
    return {"source": source, "set": [{"key": key.replace("__", "."), "value": str(value)} for key, value in settings.items()]}


def command(*words):
    return json.loads(subprocess.run([stepsim, *words, "--json"], check=True, capture_output=True, cwd=out).stdout)


small = {"model": "llama-3.2-1b", "job__sequence": 1024}


def check_same(server):
    """The page's figures are those of the commands."""
    for interval, samples in ((False, ["--samples", "0"]), (True, [])):
        status, told = server.step("llama32-3b-sft-zero3", interval, strategy__zero=2)
        assert status == 200, told
        assert told["run"] == command("run", "llama32-3b-sft-zero3", "--set", "strategy.zero=2", *samples)
    assert told["command"] == "stepsim run llama32-3b-sft-zero3 --set strategy.zero=2"
    status, gap = server.ask("/gap", {"a": side("serve", {}), "b": side("serve", {"strategy__zero": 2, "job__micro_batch": 2})})
    wanted = command("explain", "serve", "--set", "strategy.zero=2", "--set", "job.micro_batch=2", "--samples", "0")
    assert status == 200 and json.loads(gap) == wanted, gap
    assert [row["key"] for row in wanted["settings"]["rows"]], wanted["settings"]
    # What one takes away gives the same again.
    scenario = os.path.join(out, "taken.yaml")
    with open(scenario, "w") as file:
        file.write(told["run"]["scenario"]["resolved"])
    assert command("run", scenario)["step_time_s"] == told["run"]["step_time_s"]
    status, page = server.ask("/page", {"a": side("serve", small), "b": side("serve", small | {"strategy__zero": 2})})
    assert status == 200 and page.startswith(b"<!doctype html>") and b"Why they differ" in page


def check_files(server):
    """Nothing but the catalogue, the folders that were named and what was posted is read."""
    secret = os.path.join(out, "secret")
    os.makedirs(secret, exist_ok=True)
    with open(os.path.join(secret, "config.json"), "w") as file:
        file.write('{"architectures": ["LlamaForCausalLM"], "hidden_size": "hush"}')
    with open(os.path.join(secret, "ds.json"), "w") as file:
        file.write('{"hush": 1}')
    tried = {"model": [secret, secret + "/config.json", "../../../../etc/passwd", "/etc/passwd"],
             "strategy__deepspeed": [secret + "/ds.json", "/etc/passwd", "/proc/self/environ"]}
    for key, values in tried.items():
        for value in (*values, "/there/is/nothing", out + "/nothing"):
            status, told = server.step(**{key: value})
            key_said = key.replace("__", ".")
            assert status == 422 and told["problems"] == [{"key": key_said, "text": f"--set: {key_said}: no path outside what is served is taken"}], (value, told)
    for text in (f"base_model: {secret}\nsequence_len: 512\nmicro_batch_size: 1\n", f"base_model: llama-3.2-1b\nsequence_len: 512\nmicro_batch_size: 1\ndeepspeed: {secret}/ds.json\n"):
        status, told = server.step("a.yaml", files=[{"name": "a.yaml", "text": text}])
        assert status == 422 and "hush" not in str(told), told
    for source in ("secret/config.json", "/etc/passwd", secret + "/ds.json"):
        assert server.step(source)[0] == 422, source


def check_hostile(server):
    host, tail = b"Host: 127.0.0.1\r\n", b"\r\n"
    token = server.token.encode()
    asked = b"/step?token=" + token
    for path in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/etc/passwd", "/step/../", "//step"):
        assert server.ask(path)[0] == 404, path
    assert server.ask("/", token="")[0] == server.ask("/", token="0" * 32)[0] == server.ask("/etc/passwd", token="no")[0] == 403
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "POST", "HEAD"):
        assert server.ask("/", method=method)[0] == 405, method
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}, {"Host": f"evil.example:{server.port}"},
                    {"Host": f"127.0.0.1:{server.port - 1}"}):
        assert server.ask("/", **headers)[0] == 403, headers
    assert server.ask("/", Host=f"LOCALHOST:{server.port}")[0] == 200
    assert server.ask("/step", b"x" * (1 << 20) + b"x")[0] == 413
    assert b" 413 " in server.raw(b"POST " + asked + b" HTTP/1.1\r\n" + host + b"Content-Length: 99999999999\r\n\r\n")
    assert b" 431 " in server.raw(b"GET /?token=" + token + b" HTTP/1.1\r\n" + host + b"X: " + b"y" * 70000 + b"\r\n\r\n")
    for rubbish in (b"\0" * 4096, b"\r\n\r\n\r\n", b"GET\r\n\r\n", b" \n", b"GET / HTTP/9.9\r\n" + host + tail, bytes(range(256)) * 64, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"y" * 70000):
        heard = server.raw(rubbish)
        assert heard == b"" or heard.startswith(b"HTTP/1.1 403 "), heard[:200]
    for rubbish in (b" HTTP/9.9\r\n" + host + tail, b" HTTP/1.1\r\nHost\r\n\r\n", b" HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n", b" HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
        heard = server.raw(b"POST " + asked + rubbish)
        assert heard.startswith(b"HTTP/1.1 400 "), heard[:200]
    # A second request behind the first one is not answered.
    one = b"GET /?token=" + token + b" HTTP/1.1\r\n" + host + tail
    assert server.raw(one + one + b"rubbish" * 9999).count(b"HTTP/1.1 ") <= 1
    for body in (b"{" * 100000, b"[" * 100000, b'{"a": &a [*a]}', b"\xff\xfe\0\0", b'{"a": {"source": "serve", "set": [' + b'{"key": "k", "value": "v"},' * 300 + b"]}}"):
        status, text = server.ask("/step", body)
        assert status == 422 and json.loads(text)["problems"], (body[:20], status, text[:200])
    assert server.step(cluster__nodes=8193)[0] == 422


def check_slow_ones(server):
    """Half of a request, one that takes long, and one whose process dies: others are answered meanwhile."""
    halves = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
    for half in halves:
        half.sendall(b"POST /step?token=" + server.token.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")
    assert server.step(**small)[0] == 200
    for half in halves:
        half.close()
    server.wait_for_children(False)

    def long_one():
        connection = socket.create_connection(("127.0.0.1", server.port))
        body = json.dumps({"a": side("qwen3-30b-sft-zero3", {}), "b": side("qwen3-30b-sft-zero3", {"strategy__zero": 2})}).encode()
        connection.sendall(b"POST /gap?token=" + server.token.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        server.wait_for_children(True)
        time.sleep(0.3)
        return connection

    with long_one():
        assert server.step(**small)[0] == 200
    server.wait_for_children(False, 5)  # whoever asked has gone: nobody computes on
    with long_one() as connection:
        os.kill(server.children()[0], signal.SIGSEGV)
        heard = connection.recv(1 << 16)
        assert heard.startswith(b"HTTP/1.1 500 ") and b"this is a bug of ours: the process of this question ended with signal 11" in heard, heard
    assert server.step(**small)[0] == 200


def seconds_to_answer(server):
    begin = time.monotonic()
    assert server.step(**small)[0] == 200
    return time.monotonic() - begin


# Silent, within its first line, and refused.
strange_words = (b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def trickle(callers, words):
    for caller in callers:
        try:
            caller.sendall(words)
        except OSError:  # it has given way already
            pass


def check_strangers(server):
    """100 callers without the token keep nobody waiting for as much as 100 ms, and none of them stays for long, however it talks."""
    alone = min(seconds_to_answer(server) for _ in range(5))
    best = {}  # of three tries, as other work on this machine makes some of them slow
    for words in strange_words * 3:
        callers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
        trickle(callers, words)
        trickle(callers, b"x")
        best[words] = min(seconds_to_answer(server), best.get(words, 60))
        for caller in callers:
            caller.close()
    assert max(best.values()) < alone + 0.1, (alone, best)
    for words in strange_words:
        with socket.create_connection(("127.0.0.1", server.port)) as caller:
            begin = time.monotonic()
            caller.sendall(words)
            try:
                while time.monotonic() < begin + 30:
                    time.sleep(0.05)
                    caller.sendall(b"x")
            except OSError:
                pass
            assert time.monotonic() < begin + 8, f"{words} keeps a place for {time.monotonic() - begin:.1f} s"
    assert b" 408 " in server.raw(b"POST /step?token=" + server.token.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{")


def check_long_ones(server):
    """Of 12 questions that take long a few are computed at once, and one that does not is answered meanwhile."""
    body = json.dumps({"a": side("qwen3-30b-sft-zero3", {"job__gradient_accumulation": 8})}).encode()
    callers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(12)]
    for caller in callers:
        caller.sendall(b"POST /step?token=" + server.token.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    taken = [seconds_to_answer(server) for _ in range(6)]
    assert min(taken) < 1, taken
    # When the first is answered, those that wait for a place have no process.
    assert select.select(callers, [], [], 300)[0], "none of them is answered"
    at_once = min(max(os.cpu_count() // 2, 2), 8)
    assert len(server.children()) <= at_once, f"{len(server.children())} at once"
    for caller in callers:
        caller.close()
    server.wait_for_children(False, 5)


def check_folder():
    """What nothing can be begun with is left out of the page, and said there and on the terminal."""
    folder = os.path.realpath(os.path.join(out, "folder"))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, text in (("list.yaml", "- a list\n"), ("broken.yaml", "a: [1\n"), ("notes.txt", "no settings"),
                       ("mine.yaml", "name: mine\nmodel: llama-3.2-1b\nstack: deepspeed-hf\ncluster: {node: h100-8}\njob: {sequence: 1024}\nstrategy: {zero: 3, checkpointing: full}\n")):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    os.mkfifo(os.path.join(folder, "pipe.yaml"))
    os.symlink("/etc/hostname", os.path.join(folder, "link.yaml"))
    reasons = [f"{folder}/{reason}" for reason in ("broken.yaml:2: is no valid YAML: did not find expected ',' or ']'", "link.yaml: is a link to a file that is not served",
                                                   "list.yaml: expected a mapping of keys to values", "pipe.yaml: cannot be read: it is no regular file")]
    if os.geteuid() != 0:
        shutil.copy(os.path.join(folder, "list.yaml"), os.path.join(folder, "shut.yaml"))
        os.chmod(os.path.join(folder, "shut.yaml"), 0)
        reasons.append(f"{folder}/shut.yaml: cannot be read: Permission denied")
    with Server(folder) as server:
        status, page = server.ask("/")
        assert status == 200 and f'"left_out": {json.dumps(reasons)}' in page.decode() and f'"{folder}/mine.yaml"' in page.decode(), page[:2000]
        status, told = server.step(f"{folder}/mine.yaml")
        assert status == 200, told
        server.process.send_signal(signal.SIGINT)
        _, complaint = server.process.communicate(timeout=10)
        assert complaint == "".join(f"stepsim: note: left out: {reason}\n" for reason in reasons), complaint


def check_programs():
    """Behind a proxy with a path of its own: named tokens in a head, routes for programs, health, and a log without secrets."""
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with open(os.path.join(out, "tokens.yaml"), "w") as file:
        file.write("ada: 0123456789abcdefAda\nbob: 0123456789abcdefBob\n")
    log = os.path.join(out, "requests.log")
    if os.path.exists(log):
        os.remove(log)
    with Server("--tokens", "tokens.yaml", "--log", log, "--public-url", "https://tools.example.org/sim", port=port) as server:
        assert server.link == "https://tools.example.org/sim/?token=TOKEN", server.link
        for path in ("/health", "/sim/health"):
            assert server.raw(f"GET {path} HTTP/1.1\r\nHost: anything\r\n\r\n".encode()).endswith(b'{"status": "ok"}\n')
        assert b" 403 " in server.raw(b"GET /health/../ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        ada, bob = ({"Authorization": f"Bearer 0123456789abcdef{name}", "Host": "tools.example.org"} for name in ("Ada", "Bob"))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for head, wanted in ((ada, 200), (bob, 200), ({**bob, "Authorization": "Bearer 0123456789abcdefEve"}, 403)):
            connection.request("POST", "/sim/api/v1/run", json.dumps({"scenario": "serve", "set": {"model": "llama-3.2-1b"}, "samples": 0}), {"Content-Type": "application/json", **head})
            answer = connection.getresponse()
            told = json.loads(answer.read())
            assert answer.status == wanted and (wanted == 403 or told == command("run", "serve", "--set", "model=llama-3.2-1b", "--samples", "0")), (answer.status, told)
            connection.close()
        connection.request("GET", "/api/v1/openapi.json", headers=bob)
        document = json.loads(connection.getresponse().read())
        assert document == json.loads(subprocess.run([stepsim, "list", "--openapi"], check=True, capture_output=True).stdout)
        connection.close()
        connection.request("POST", "/api/v1/run?token=0123456789abcdefAda", json.dumps({"scenario": "/etc/passwd"}), {"Content-Type": "application/json", "Host": "tools.example.org"})
        refused = connection.getresponse()
        assert refused.status == 422 and b"no path outside what is served is taken" in refused.read()
        server.end()
    with open(log) as file:
        lines = file.read()
    assert re.fullmatch(r"(?:20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ .* \d+ ms\n){4}", lines), lines
    assert [line.split()[1:5] for line in lines.splitlines()] == [["ada", "POST", "/sim/api/v1/run", "200"], ["bob", "POST", "/sim/api/v1/run", "200"],
                                                                ["bob", "GET", "/api/v1/openapi.json", "200"], ["ada", "POST", "/api/v1/run", "422"]], lines
    assert "0123" not in lines


def seconds_of(server, count, **settings):
    """How long requests take, in order."""
    taken = []
    for number in range(count):
        begin = time.monotonic()
        status, told = server.step(**settings, job__micro_batch=1 + number % 4)
        taken.append(time.monotonic() - begin)
        assert status == 200, told
    return sorted(taken)


def check_memory(server):
    """200 requests in a row; and a dense step is there within 150 ms, even beside other work."""
    seconds_of(server, 5, **small)
    before = server.memory()
    seconds_of(server, 200, **small)
    assert server.memory() <= before + 256, f"{before} kB before 200 requests, {server.memory()} kB after"
    taken = seconds_of(server, 20)  # of 8 billion parameters
    assert taken[5] < 0.15, taken
    return taken[10]


if how == "quick":
    with Server() as server:
        status, told = server.step(**small)
        assert status == 200 and told["run"]["step_time_s"] > 0, told
        assert server.ask("/", token="no")[0] == 403
        server.end()
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    refused = subprocess.run([stepsim, "serve", "--port", str(taken.getsockname()[1])], capture_output=True, text=True)
    assert refused.returncode == 2 and refused.stderr == f"stepsim: --port: nobody can listen at 127.0.0.1 port {taken.getsockname()[1]}: Address already in use; 0 takes a free port\n", refused
    check_programs()
    print("answered")
else:
    temporary = os.path.join(out, "tmp")
    shutil.rmtree(temporary, ignore_errors=True)  # a run that failed left something
    os.makedirs(temporary)
    os.environ["TMPDIR"] = temporary
    with Server() as server:
        check_same(server)
        check_files(server)
        check_hostile(server)
        check_slow_ones(server)
        check_strangers(server)
        check_long_ones(server)
        half_a_step = check_memory(server)
        server.end(signal.SIGTERM)
        assert os.listdir(temporary) == [], os.listdir(temporary)
    check_folder()
    print(f"a request takes {1000 * half_a_step:.0f} ms")
