"""Chromium, controlled over the WebDriver protocol."""

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tests.ports import unused_port

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # how the protocol names a reference to one
_FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
          "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
          "--window-size=1200,1400"]  # fmt: skip

_SCRIPT_MS = 200_000  # a check of a long page takes half a minute on a busy machine
_ANSWER_SECONDS = 240


class Failed(Exception):
    """The browser returned an error."""


class Browser:
    """A browser window, and the folder of its downloads."""

    def __init__(self, url: str, downloads: Path) -> None:
        self.downloads = downloads
        options = {
            "args": _FLAGS,
            "binary": shutil.which("chromium") or shutil.which("google-chrome") or "",
            "prefs": {"download.default_directory": str(downloads)},
        }
        timeouts = {"script": _SCRIPT_MS}
        always = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}, "timeouts": timeouts}
        wanted = {"alwaysMatch": always}
        self._url = url
        session = self._say("POST", "/session", {"capabilities": wanted})["sessionId"]
        self._url += f"/session/{session}"

    def _say(self, method: str, path: str, body: Any = None) -> Any:
        data = None if method == "GET" else json.dumps(body or {}).encode()
        asked = Request(self._url + path, data, {"content-type": "application/json"}, method=method)  # noqa: S310
        try:
            with urlopen(asked, timeout=_ANSWER_SECONDS) as response:  # noqa: S310
                return json.loads(response.read())["value"]
        except HTTPError as problem:
            with problem:
                raise Failed(json.loads(problem.read())["value"]["message"]) from None

    def open(self, url: str) -> None:
        self._say("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._say("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def has(self, selector: str) -> bool:
        return bool(self.run("return document.querySelector(arguments[0]) !== null", selector))

    def go(self, page: str) -> None:
        """Open a page of the dashboard by its URL, and wait for its heading."""
        self.run("location.hash = `#/${arguments[0]}`", page)
        self.until(lambda: self.has("main h1"), f"{page} has no heading")

    def press(self, label: str, within: str = "body") -> None:
        """Click the first button or link with this text, as soon as there is one."""
        script = (
            "const found = [...document.querySelector(arguments[1])?.querySelectorAll('button, a, summary') ?? []]"
            ".find((each) => each.innerText.trim() === arguments[0] && !each.disabled);"
            "found?.click(); return Boolean(found)"
        )
        self.until(lambda: bool(self.run(script, label, within)), f"there is no {label} to press in {within}")

    def fill(self, selector: str, text: str) -> None:
        """Replace the value of a field, as typing does."""
        self.run(
            "const field = document.querySelector(arguments[0]);"
            "const own = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value').set;"
            "own.call(field, arguments[1]); field.dispatchEvent(new Event('input', {bubbles: true}));"
            "field.dispatchEvent(new Event('change', {bubbles: true}))",
            selector,
            text,
        )

    def labelled(self, label: str) -> str:
        """Return a selector for the field with this label, as soon as there is one."""
        script = (
            "return [...document.querySelectorAll('label[for]')].find((each) =>"
            " each.innerText.trim().split('\\n')[0] === arguments[0])?.htmlFor ?? null"
        )
        self.until(lambda: self.run(script, label) is not None, f"no field is labelled {label}")
        return f"[id='{self.run(script, label)}']"

    def resize(self, width: int, height: int) -> None:
        """Show the page as on a screen of this size; narrow ones as a phone does."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._say("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def connect(self, is_online: bool) -> None:
        """Take the network away from the browser, or give it back."""
        conditions = {"offline": not is_online, "latency": 0, "download_throughput": -1, "upload_throughput": -1}
        self._say("POST", "/chromium/network_conditions", {"network_conditions": conditions})

    def send_headers(self, **headers: str) -> None:
        """Send these headers with every call from now on, as a proxy in front of the gateway adds them."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._say("POST", "/goog/cdp/execute", {"cmd": "Network.enable", "params": {}})
        self._say("POST", "/goog/cdp/execute", {"cmd": "Network.setExtraHTTPHeaders", "params": {"headers": named}})

    def forget_files(self) -> None:
        """Empty the cache of files, so that the next page is loaded as at a first visit."""
        self._say("POST", "/goog/cdp/execute", {"cmd": "Network.clearBrowserCache", "params": {}})

    def errors(self) -> list[str]:
        """Return the errors on the console, but for those about calls that the gateway refused."""
        lines = [line for line in self.log() if line["level"] == "SEVERE"]
        return [line["message"] for line in lines if "the server responded with a status of" not in line["message"]]

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def value(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).value", selector))

    def _find(self, selector: str) -> str:
        found: dict[str, str] = self._say("POST", "/element", {"using": "css selector", "value": selector})
        return found[_ELEMENT]

    def click(self, selector: str) -> None:
        self._say("POST", f"/element/{self._find(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        self._say("POST", f"/element/{self._find(selector)}/value", {"text": text})

    def until(self, met: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 30
        while not met():
            assert time.monotonic() < deadline, what
            time.sleep(0.05)

    def log(self) -> list[dict[str, Any]]:
        """Return what was written to the console, violations of the security policy included."""
        found: list[dict[str, Any]] = self._say("POST", "/se/log", {"type": "browser"})
        return found

    def save_screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._say("GET", "/screenshot")))

    def close(self) -> None:
        self._say("DELETE", "")


def sign_in(browser: Browser, url: str, key: str, page: str = "") -> None:
    """Sign in and wait for the frame; `page` is a path such as `requests`."""
    browser.open(f"{url}/#/{page}")
    browser.until(lambda: browser.has("#sign-in"), "the sign-in page is not shown")
    browser.type("#sign-in input[type=password]", key)
    browser.click("#sign-in button")
    browser.until(lambda: browser.has("#sign-out"), "the key is not accepted")


@contextmanager
def chromium(downloads: Path) -> Iterator[Browser]:
    driver = shutil.which("chromedriver")
    assert driver, "these tests need Chromium and chromedriver, which most systems package"
    port = unused_port()
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        browser = _open_browser(f"http://127.0.0.1:{port}", downloads)
        try:
            yield browser
        finally:
            browser.close()
    finally:
        process.terminate()
        process.wait()


def _open_browser(url: str, downloads: Path) -> Browser:
    deadline = time.monotonic() + 30
    while True:
        try:
            return Browser(url, downloads)
        except URLError:
            assert time.monotonic() < deadline, "the driver does not answer"
            time.sleep(0.05)
