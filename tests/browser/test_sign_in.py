"""Signing in to the dashboard with a key, and signing out."""

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

KEPT = "return document.cookie + JSON.stringify(sessionStorage) + JSON.stringify(localStorage)"


def test_no_script_can_read_the_key_and_signing_out_ends_the_session(served: Serving, browser: Browser) -> None:
    browser.open(served.url + "/")
    browser.until(lambda: browser.run("return document.activeElement.type") == "password", "the field has no focus")
    sign_in(browser, served.url, served.key)
    assert "pk_" not in browser.run(KEPT)
    browser.open("about:blank")
    browser.open(served.url + "/#/playground")  # loaded again
    browser.until(lambda: browser.has("#sign-out"), "a reload signs out")
    browser.click("#sign-out")
    browser.until(lambda: browser.has("#sign-in"), "the sign-in page is not shown")
    assert browser.run("return sessionStorage.length") == 0
    browser.open("about:blank")
    browser.open(served.url + "/#/requests")
    browser.until(lambda: browser.has("#sign-in"), "the session goes on after signing out")
    assert browser.errors() == []


def test_a_first_visit_asks_only_this_gateway_and_paints(served: Serving, browser: Browser) -> None:
    browser.open(served.url + "/")
    browser.until(lambda: browser.has("#sign-in"), "the sign-in page is not shown")
    paint = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
    browser.until(lambda: browser.run(paint) is not None, "nothing is painted")
    resources = browser.run(
        "return performance.getEntriesByType('resource').map((each) => [each.name, each.transferSize])"
    )
    assert [name for name, _ in resources if not name.startswith(served.url + "/")] == []
    assert sum(size for _, size in resources) < 230_000, resources
    sign_in(browser, served.url, served.key)
    browser.until(lambda: browser.has("main h1"), "no page is shown")
    names = browser.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert [name for name in names if not name.startswith(served.url + "/")] == []
    assert browser.errors() == []


def test_staying_signed_in_is_a_choice(served: Serving, browser: Browser) -> None:
    browser.open(served.url + "/")
    browser.until(lambda: browser.has("#sign-in"), "the sign-in page is not shown")
    browser.click("#sign-in input[type=checkbox]")
    sign_in(browser, served.url, served.key)
    began = "(await (await fetch('/v1/session')).json()).expires_at"
    browser.run(f"(async () => {{ window.until = {began}; }})()")
    browser.until(lambda: bool(browser.run("return window.until")), "the gateway does not tell until when")
    days = browser.run("return (new Date(window.until) - Date.now()) / 86400000")
    assert 29 < days <= 30


def test_signing_out_everywhere_ends_the_sessions_of_other_browsers(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key)
    served.call("DELETE", "/v1/session?everywhere=true")
    browser.go("requests")
    browser.until(lambda: "Your session has ended" in browser.text("#refusal"), "the page goes on")


def test_a_wrong_key_is_refused_in_plain_words_and_in_red(served: Serving, browser: Browser) -> None:
    for wrong in ("pk_wrong", "ключ"):
        browser.open("about:blank")
        browser.open(served.url + "/")
        browser.until(lambda: browser.has("#sign-in"), "the sign-in page is not shown")
        browser.type("#sign-in input[type=password]", wrong)
        browser.click("#sign-in button")
        browser.until(lambda: "This key is not valid" in browser.text("#refusal"), "nothing is said")
        red, _, blue = browser.run(
            "return getComputedStyle(document.querySelector('#refusal')).color.match(/\\d+/g).map(Number)"
        )
        assert red > blue + 60


def test_a_key_that_is_revoked_meanwhile_signs_out(served: Serving, browser: Browser) -> None:
    other = served.call("POST", "/v1/keys", {"name": "other"}).json
    sign_in(browser, served.url, other["key"])
    served.call("DELETE", f"/v1/keys/{other['id']}")
    browser.go("requests")
    browser.until(lambda: "no longer valid" in browser.text("#refusal"), "the page goes on with a revoked key")
