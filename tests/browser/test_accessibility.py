"""Every page of the dashboard checked by axe-core, in light and in dark; by keyboard, and at the width of a phone."""

import pytest

from tests.browser.axe import AXE, choose_theme, violations
from tests.browser.chromium import Browser, sign_in
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

PAGES = (
    "overview",
    "playground/image",
    "playground/edit",
    "playground/upscale",
    "playground/video",
    "playground/chat",
    "playground/speech",
    "playground/music",
    "playground/transcription",
    "library",
    "requests",
    "models",
    "models/atelier/sketch",
    "providers",
    "labels",
    "destinations",
    "guards",
    "recordings",
    "webhooks",
    "batches",
    "keys",
    "organizations",
    "settings",
    "verify",
    "drill",
    "trials",
    "trials/new",
)
# What opens a dialog on a page.
DIALOGS = {
    "keys": "New key",
    "playground/image": "Code",
    "organizations": "New organization",
    "recordings": "Show",
    "webhooks": "Details",
}
CHAT = {"model": "atelier/echo", "messages": [{"role": "user", "content": "hi"}]}
IMAGE = {"model": "atelier/sketch", "prompt": "a lighthouse at dusk, calm sea", "size": "128x128"}


def settled(browser: Browser) -> bool:
    """Everything is loaded, and nothing is fading in."""
    return bool(
        browser.run(
            "const isFading = document.getAnimations().some((each) => each.playState === 'running');"
            "return !isFading && !document.querySelector('main .spinner') && document.querySelector('main h1') !== null"
        )
    )


def look_at(browser: Browser, page: str) -> list[str]:
    browser.go(page)
    browser.until(lambda: settled(browser), f"{page} does not settle")
    found = [f"{page}: {problem}" for problem in violations(browser)]
    if page in DIALOGS:
        opens = DIALOGS[page]
        browser.press(opens, "main")
        browser.until(lambda: browser.has("dialog[open]"), f"{page} opens no dialog")
        found += [f"{page}, {opens}: {problem}" for problem in violations(browser)]
        browser.run("document.querySelector('dialog header button').click()")
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_finding(served: Serving, browser: Browser, lab: ScriptedProvider, theme: str) -> None:
    key = served.call("POST", "/v1/keys", {"name": "recorder", "replay_mode": "record"}).json["key"]
    made = served.call("POST", "/compat/v1/images/generations", IMAGE, key=key).json
    served.call("POST", "/compat/v1/images/generations", {**IMAGE, "model": "atelier/unknown"})
    served.call("POST", "/compat/v1/chat/completions", CHAT)
    lab.chats.next(faults.broken)
    served.call("POST", "/compat/v1/chat/completions", {**CHAT, "model": "lab/chat"})
    video = {
        "model": "atelier/clip",
        "prompt": "waves [fail]",
        "seconds": 1,
        "webhook_url": "https://hooks.example.com/",
    }
    failed = served.call("POST", "/compat/v1/videos", video).json
    browser.open(served.url + "/")
    choose_theme(browser, theme)
    browser.open("about:blank")
    browser.open(served.url + "/")
    browser.run(AXE)
    browser.until(lambda: browser.has("#sign-in"), "the sign-in page is not shown")
    found = [f"sign in: {problem}" for problem in violations(browser)]
    sign_in(browser, served.url, served.key, "playground/image")
    browser.until(lambda: browser.has("#run:enabled"), "the form is not ready")
    browser.click("#run")
    browser.until(lambda: browser.has(".outputs img"), "no image")
    browser.run(AXE)
    [output] = served.call("GET", f"/v1/outputs?request_id={made['id']}").json["data"]
    own = (f"requests/{made['id']}", f"requests/{failed['id']}", f"library?show={output['id']}")
    for page in (*PAGES, *own):
        found += look_at(browser, page)
    assert found == []
    assert browser.errors() == []


def test_the_pages_work_by_keyboard_and_fit_a_phone(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key)
    browser.resize(390, 844)
    served.call("POST", "/compat/v1/images/generations", IMAGE)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for page in PAGES:
        browser.go(page)
        browser.until(lambda: settled(browser), f"{page} does not settle")
        assert browser.run(wide) <= 0, f"{page} is wider than the phone"
    browser.resize(1280, 900)
    browser.go("requests")
    browser.until(lambda: browser.has(".row-link"), "no request is listed")
    browser.type(".row-link", "\ue007")  # the enter key
    browser.until(lambda: browser.has("#purge"), "the enter key does not open the request")
    browser.click("#purge")
    browser.until(lambda: browser.has("dialog[open]"), "no dialog")
    browser.type("dialog button", "\ue00c")  # the escape key
    browser.until(lambda: not browser.has("dialog"), "the escape key does not close the dialog")
    assert browser.run("return document.activeElement.id") == "purge", "the focus is lost"
