"""A headless Chromium that tests control and inspect by the DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""Seconds for any answer, far more than a busy machine needs."""
_KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "Home": (36, "")}
_KEYS |= {"ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, "")}


class Browser:
    """One page of a running Chromium. ``complaints`` are reports of its console, its policy and its scripts."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self.complaints: list[str] = []
        self._to, self._from = to_browser, from_browser
        self._received = b""
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol, and record complaints that arrive meanwhile."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            assert select.select([self._from], [], [], PATIENCE)[0], "the browser does not answer"
            part = os.read(self._from, 1 << 16)
            assert part, "the browser ended"
            self._received += part
        text, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(message["params"]))
        return message

    def open(self, file: Path, *, width: int = 1024, dark: bool = False, scripts: bool = True) -> None:
        """Load a file, and wait until its scripts ran and the layout is done."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=theme)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=file.as_uri())
        until = time.monotonic() + PATIENCE
        while self.run("location.href + document.readyState") != file.as_uri() + "complete":
            assert time.monotonic() < until, "the page does not load"
        if scripts:
            self.settle()

    def settle(self) -> None:
        """Wait for the next frame of the page."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys by their names; other words are typed letter by letter."""
        for key in keys:
            for each in [key] if key in _KEYS else key:
                code, text = _KEYS[each] if each in _KEYS else (ord(each.upper()), each)
                event = {"key": each, "windowsVirtualKeyCode": code, "text": text}
                self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **event)
                self.call("Input.dispatchKeyEvent", type="keyUp", key=each, windowsVirtualKeyCode=code)
        self.settle()

    def screenshot(self, file: Path) -> None:
        """Write the whole page as a PNG file."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a Chromium with a profile in a new folder, and end it afterwards."""
    program = shutil.which("chromium")
    assert program
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    argv = [program, *options, "--remote-debugging-pipe"]
    ends = [*os.pipe(), *os.pipe()]
    # The browser reads file descriptor 3 and writes 4, so our own descriptors must have other numbers.
    commands, to_browser, from_browser, answers = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    quiet = os.open(os.devnull, os.O_RDWR)
    places = [(os.POSIX_SPAWN_DUP2, found, to) for found, to in ((commands, 3), (answers, 4), (quiet, 1), (quiet, 2))]
    process = os.posix_spawn(program, argv, os.environ, file_actions=places, setsid=True)
    for end in (commands, answers, quiet):
        os.close(end)
    try:
        yield Browser(to_browser, from_browser)
    finally:
        os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(to_browser)
        os.close(from_browser)
