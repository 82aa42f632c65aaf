"""A headless Chromium, driven through two pipes by its DevTools protocol; nothing has to be installed."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: How the browser may be called.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-dev-shm-usage", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip
#: Seconds after which a page that answers nothing counts as broken.
PATIENCE = 60.0


def chromium() -> str | None:
    """The path of the browser, or None where there is none, or no way to hand it the pipes."""
    return next(filter(None, map(shutil.which, NAMES)), None) if os.name == "posix" else None


in_a_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium on the path")


class Tab:
    """One tab. ``requests`` are the addresses that it asked for since it was opened."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest, self._number = write, read, b"", 0
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol and wait for its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self._keep(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded and its formulas are set."""
        self._events.clear()
        self.call("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._keep(self._receive())
        self.evaluate("window.MathJax ? MathJax.startup.promise.then(() => true) : true")

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def _keep(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])
        if "method" in event:
            self._events.append(event)

    def _receive(self) -> dict[str, Any]:
        """The next message; messages end with a zero byte."""
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError(f"Chromium answered nothing for {PATIENCE:g} seconds.")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended.")
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)


@contextmanager
def browser() -> Iterator[Tab]:
    """A tab of a new browser with an empty profile."""
    import fcntl

    path = chromium()
    assert path is not None
    (reads, write), (read, writes) = os.pipe(), os.pipe()
    # the browser expects the pipes as descriptors 3 and 4; keep ours out of the way
    ours, theirs = (write, read), [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (reads, writes)]

    def connect() -> None:
        os.dup2(theirs[0], 3)
        os.dup2(theirs[1], 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={profile}"],
            preexec_fn=connect, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (reads, writes, *theirs):
            os.close(end)
        try:
            yield Tab(*ours)
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)
            for end in ours:
                os.close(end)
