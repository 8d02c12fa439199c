"""A page in headless Chromium, driven by its DevTools protocol with Python's own library.

    with Browser(1280, 800) as browser:
        browser.open("report.html")
        browser.evaluate("document.title")
        browser.mouse("mouseMoved", 100, 200)
        browser.problems        # what the console and uncaught exceptions said
"""

import base64
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import time

LIMIT_S = 60


def find():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    return None


class Socket:
    """The client's side of a WebSocket (RFC 6455), text messages only."""

    def __init__(self, port, path):
        self.stream = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                             f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                             "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.stream.recv(4096)
        self.buffer = self.buffer.split(b"\r\n\r\n", 1)[1]

    def send(self, text):
        data = text.encode()
        size = len(data)
        head = bytes([0x81, 0x80 | size]) if size < 126 else \
            struct.pack(">BBH", 0x81, 0xfe, size) if size < 65536 else struct.pack(">BBQ", 0x81, 0xff, size)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.stream.sendall(head + mask + masked)

    def _read(self, count):
        while len(self.buffer) < count:
            more = self.stream.recv(1 << 20)
            if not more:
                raise ConnectionError("the browser has gone")
            self.buffer += more
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def receive(self):
        text = b""
        while True:
            first, size = self._read(2)
            if size == 126:
                size, = struct.unpack(">H", self._read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self._read(8))
            part = self._read(size)
            if first & 0x0f in (0, 1, 2):
                text += part
                if first & 0x80:
                    return text.decode()


class Browser:
    def __init__(self, width, height, scale=1, mobile=False):
        self.size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
        self.problems, self.socket, self._last = [], None, 0

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="warren-browser-")
        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--remote-debugging-port=0", f"--user-data-dir={self.folder}",
             "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        told = pathlib.Path(self.folder) / "DevToolsActivePort"
        end = time.monotonic() + LIMIT_S
        while not (told.exists() and told.read_text().count("\n") >= 1):
            if time.monotonic() > end or self.process.poll() is not None:
                self.__exit__()
                raise RuntimeError("the browser does not start")
            time.sleep(0.02)
        port, path = told.read_text().split("\n")[:2]
        self.socket = Socket(int(port), path)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", **self.size)
        return self

    def __exit__(self, *_):
        if self.socket:
            self.socket.stream.close()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.receive())
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer.get("method"), answer.get("params", {}))

    def _note(self, event, told):
        if event == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.problems.append(str([one.get("value") for one in told["args"]]))
        elif event == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.problems.append(told["entry"]["text"])

    def evaluate(self, expression):
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                          returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, expression):
        end = time.monotonic() + LIMIT_S
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise RuntimeError(f"never: {expression}; {self.problems}")
            time.sleep(0.02)

    def settle(self):
        """Waits until what was asked for is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def open(self, path):
        self.call("Page.navigate", url=pathlib.Path(path).absolute().as_uri())
        self.wait("document.body && document.body.dataset.ready === 'yes'")
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=count)

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
