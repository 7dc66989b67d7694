"""Signing in to the dashboard with a key or through a proxy, and signing out."""

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

PROXY_SECRET = "the-proxy-and-the-gateway-know-it"
PROXY = """
trusted_proxies = ["127.0.0.1"]
[proxy_sign_in]
user_header = "X-Forwarded-User"
email_header = "X-Forwarded-Email"
button = "Sign in with Studio"
[[proxy_sign_in.roles]]
email = "anna@studio.example"
org = "*"
role = "operator"
"""
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


def test_people_sign_in_through_a_proxy_by_a_button_and_their_page_says_when_nobody_touches_it(
    story: Installation, browser: Browser
) -> None:
    story.toml = PROXY
    with story.serving(PENSTOCK_PROXY_SIGN_IN_SECRET=PROXY_SECRET) as served:
        browser.open(served.url + "/#/requests")
        browser.press("Sign in with Studio")
        browser.until(lambda: "you did not come through it" in browser.text("#refusal"), "nothing is said")
        assert browser.text("#with-key") == "Sign in with an API key instead"
        browser.send_headers(X_Proxy_Secret=PROXY_SECRET, X_Forwarded_User="ben", X_Forwarded_Email="ben@a.example")
        browser.press("Sign in with Studio")
        browser.until(lambda: "nobody has given you a role" in browser.text("#refusal"), "nothing is said")
        browser.send_headers(
            X_Proxy_Secret=PROXY_SECRET, X_Forwarded_User="anna", X_Forwarded_Email="anna@studio.example"
        )
        browser.open("about:blank")
        browser.open(served.url + "/#/requests")
        browser.press("Sign in with Studio")
        browser.until(lambda: browser.text("main h1") == "Requests", "the page that was asked for is not shown")
        check_presence(browser)
        browser.click("#sign-out")
        browser.until(lambda: browser.has("#with-issuer"), "signing out does not lead to the sign-in page")
        assert browser.errors() == []


def check_presence(browser: Browser) -> None:
    """The calls of a page say whether somebody is there."""
    browser.run(
        "const now = Date.now, fetched = window.fetch; window.later = 0; Date.now = () => now() + window.later;"
        "window.fetch = (path, init) => { window.said = init.headers['x-penstock-page']; return fetched(path, init); }"
    )
    for seconds, page, said in ((0, "overview", "1"), (61, "library", "unattended"), (0, "requests", "1")):
        if not seconds:
            browser.click("main h1")
        browser.run("window.later += arguments[0] * 1000; window.said = null", seconds)
        browser.go(page)
        browser.until(lambda: browser.run("return window.said") is not None, f"{page} calls nothing")
        assert browser.run("return window.said") == said, page
