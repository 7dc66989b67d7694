"""Check a page of the browser with axe-core, in light or in dark."""

from pathlib import Path
from typing import Any

from tests.browser.chromium import Browser

AXE = (Path(__file__).parent / "third_party" / "axe.js").read_text()
CHECK = "return await axe.run(document, {resultTypes: ['violations']})"


def violations(browser: Browser) -> list[str]:
    found: dict[str, Any] = browser.run(CHECK)
    return [
        f"{rule['id']} ({rule['impact']}): {node['html'][:160]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def choose_theme(browser: Browser, theme: str) -> None:
    browser.run("localStorage.setItem('theme', arguments[0])", theme)
