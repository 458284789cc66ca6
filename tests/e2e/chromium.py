"""A real browser without a window, controlled over a pipe (the DevTools protocol)."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = [
    "--headless=new", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--remote-debugging-pipe", "--window-size=1280,900",
]


def why_not() -> str | None:
    return None if shutil.which("chromium") else "needs chromium"


class Browser:
    """One page of one browser. Everything it complains about is kept in `complaints`."""

    def __init__(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="hf-chromium-")
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()
        command = ["chromium", *FLAGS, f"--user-data-dir={self.directory}", "about:blank"]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # it refuses to run as root otherwise
        shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *command], pass_fds=(to_browser, from_browser),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": self.directory})
        os.close(to_browser)
        os.close(from_browser)
        self.left = b""
        self.number = 0
        self.session: str | None = None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        try:
            self.call("Browser.close", timeout=10)
            self.process.wait(20)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait(20)
        os.close(self.write)
        os.close(self.read)
        shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, method: str, timeout: float = 60, **parameters) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            answer = self.next_message(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.listen(answer)
        raise TimeoutError(method)

    def next_message(self, deadline: float) -> dict:
        while b"\0" not in self.left:
            if not select.select([self.read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser is silent")
            piece = os.read(self.read, 1 << 20)
            if not piece:
                raise OSError("the browser is gone")
            self.left += piece
        message, self.left = self.left.split(b"\0", 1)
        return json.loads(message)

    def listen(self, event: dict) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(json.dumps(parameters["entry"]))

    def go(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def run(self, script: str):
        """The value of an expression in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait(self, script: str, timeout: float = 20):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if value := self.run(script):
                return value
            time.sleep(0.05)
        raise TimeoutError(f"never true: {script}")

    def press(self, key: str, code: int = 0, text: str = "", modifiers: int = 0) -> None:
        options = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        down = {**options, "type": "keyDown", **({"text": text} if text else {})}
        self.call("Input.dispatchKeyEvent", **down)
        self.call("Input.dispatchKeyEvent", **options, type="keyUp")

    def type(self, text: str) -> None:
        for character in text:
            self.press(character, text=character)

    def media(self, scheme: str, motion: str = "no-preference") -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                          {"name": "prefers-reduced-motion", "value": motion}])

    def width(self, pixels: int, height: int = 900) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=pixels, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, path: str, whole: bool = False) -> None:
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))
