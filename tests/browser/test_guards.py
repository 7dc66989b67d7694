"""The page of guards: none, an error, those of penstock.toml with what they said, and a phone in the dark."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
GUARDS = """
[guards.brand-words]
rules = {words = ["gun", "explosive*"], max_characters = 4000}
kinds = ["image", "edit", "video"]
[guards.frightening]
rules = {words = ["ghost"]}
on_hit = "flag"
sample_percent = 100
[guards.house]
http = {url = "http://127.0.0.1:1/canary-path", timeout_seconds = 1}
kinds = ["image"]
on_error = "open"
[guards.eyes]
when = "output"
kinds = ["video"]
model = {model = "atelier/echo", question = "Refuse canary-question."}
"""
SHOWN = (
    ("Rules 2 words; up to 4,000 characters", "Refuses calls", "Answers", "2 0 1 0"),
    ("Flags calls", "2 1 0 0"),
    ("127.0.0.1", "Never answers", "calls pass unchecked meanwhile", "0 0 0 3"),
    ("A model atelier/echo", "Refuses outputs", "charged", "Not asked"),
)


def shoot(browser: Browser, name: str) -> None:
    """Save a screenshot where SCREENSHOTS says, to look at it."""
    if folder := os.environ.get("SCREENSHOTS"):
        browser.save_screenshot(Path(folder) / f"{name}.png")


@pytest.fixture
def guarded(story: Installation) -> Iterator[Serving]:
    """A server with guards."""
    story.toml = GUARDS
    with story.serving() as serving:
        yield serving


def test_a_gateway_without_guards_says_so(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "guards")
    browser.until(lambda: "No guards yet" in browser.text("main"), "the empty state is not shown")
    shoot(browser, "guards-empty")
    served.kill()
    browser.run(
        "const select = document.querySelector('select[name=days]');"
        "select.value = '30';"
        "select.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    browser.until(lambda: browser.has("main [role=alert]"), "it is not said that the gateway cannot be reached")
    shoot(browser, "guards-error")


def test_guards_are_shown_with_what_they_said(guarded: Serving, browser: Browser) -> None:
    for prompt, status in (("a gun", 400), ("a ghost", 200), ("a pear", 200)):
        body = {"model": "atelier/sketch", "prompt": prompt, "size": "64x64"}
        assert guarded.call("POST", "/compat/v1/images/generations", body).status == status
    sign_in(browser, guarded.url, guarded.key, "guards")
    browser.until(lambda: "brand-words" in browser.text("main"), "the guards are not listed")
    texts = browser.run("return [...document.querySelectorAll('tbody tr')].map((row) => row.innerText)")
    rows = [" ".join(text.split()) for text in texts]
    for row, words in zip(rows, SHOWN, strict=True):
        assert all(each in row for each in words), row
    assert "canary" not in browser.text("body")
    shoot(browser, "guards")
    browser.run("localStorage.setItem('theme', 'dark')")
    browser.resize(390, 844)
    browser.open("about:blank")
    browser.open(f"{guarded.url}/#/guards")
    browser.until(lambda: "brand-words" in browser.text("main"), "the page is not shown on a phone")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    shoot(browser, "guards-phone-dark")
    assert browser.errors() == []
