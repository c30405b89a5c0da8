"""A headless Chromium, spoken to over a pipe: no network, no package beside Python's own."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


def find():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="page-")
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        # It wants to read on 3 and write on 4.
        shell = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--no-first-run", "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
             "--hide-scrollbars", "--force-color-profile=srgb", f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.number, self.session, self.complaints, self.served = b"", 0, None, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.out)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.into, 1 << 20)
            if not more:
                raise RuntimeError("the browser went away")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        """Whatever a page should never make a browser say."""
        kind, what = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.complaints.append(what["exceptionDetails"].get("exception", {}).get("description", str(what)))
        elif kind == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.complaints.append(f"console: {what['args']}")
        elif kind == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning") and "status of 422" not in what["entry"]["text"]:  # a wrong setting
            self.complaints.append(f"log: {what['entry']['text']}")
        elif kind == "Network.requestWillBeSent":
            url = what["request"]["url"]
            if url.split(":")[0] not in ("file", "data", "about", "blob") and not (self.served and url.startswith(self.served)):
                self.complaints.append(f"request: {url}")

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def look(self, width=1280, height=900, scale=1, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 700)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path, width=1280, height=900, scale=1, dark=False):
        """A file, or the page of a server, which may then be asked for more."""
        self.look(width, height, scale, dark)
        self.served = "/".join(path.split("/")[:3]) + "/" if path.startswith("http://") else None
        self.call("Page.navigate", url=path if self.served else "file://" + os.path.abspath(path))
        for _ in range(1000):  # a page that throws is never ready: its complaint says why
            if self.value("document.documentElement?.dataset.ready") or self.complaints:
                return
            time.sleep(0.02)
        raise RuntimeError(f"{path} did not draw itself")

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, code=None):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      **({"text": key} if len(key) == 1 and kind == "keyDown" else {}))

    def box(self, selector):
        """Left, top, width and height of the first match, scrolled into view."""
        return self.value(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                          " const {left, top, width, height} = e.getBoundingClientRect(); return [left, top, width, height]; })()")

    def picture(self, path, whole=False):
        area = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            area = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", **area)["data"]))

    def print(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]))
