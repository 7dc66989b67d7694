"""The pages for keys, recordings and webhooks in a real browser, with names that contain markup."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

EVIL = "<img src=x onerror=document.title='gone'>"
IMAGE = {"model": "atelier/sketch", "prompt": "a pear", "size": "256x256"}


def is_nowhere(browser: Browser, secret: str) -> bool:
    fields = "[...document.querySelectorAll('input')].map((each) => each.value).join()"
    held = browser.run(f"return document.documentElement.outerHTML + {fields} + JSON.stringify(sessionStorage)")
    return secret not in held


def nothing_ran(browser: Browser, title: str) -> bool:
    found = browser.run("return [document.title, document.querySelectorAll('main img[src=x], main script').length]")
    return bool(found == [f"{title} · Penstock", 0])


def test_a_key_is_shown_once_works_and_is_revoked(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "keys")
    browser.until(lambda: "your key" in browser.text("table"), "the first key is not listed")
    browser.press("New key")
    field = browser.labelled("Name")
    assert browser.run("return document.activeElement === document.querySelector(arguments[0])", field)
    browser.fill(field, EVIL)
    browser.fill(browser.labelled("Requests per minute"), "1")
    browser.press("Create", "dialog")
    browser.until(lambda: browser.text("#made-key").startswith("pk_"), "no key is shown")
    key = browser.text("#made-key")
    browser.press("Done", "dialog")
    browser.until(lambda: is_nowhere(browser, key), "the key is still on the page")
    statuses = [served.call("POST", "/compat/v1/images/generations", IMAGE, key=key).status for _ in range(2)]
    assert statuses == [200, 429]  # the limit came with it

    browser.until(lambda: EVIL in browser.text("tbody tr"), "the new key is not listed")
    browser.click("tbody tr:first-child button.revoke")
    browser.until(lambda: EVIL in browser.text("dialog"), "the question does not name the key")
    browser.press("Cancel", "dialog")
    assert served.call("GET", "/v1/balance", key=key).status == 200
    browser.click("tbody tr:first-child button.revoke")
    browser.press("Revoke", "dialog")
    browser.until(lambda: EVIL not in browser.text("table"), "the revoked key is still listed")
    assert served.call("GET", "/v1/balance", key=key).status == 401
    browser.press("Revoked")
    browser.until(lambda: EVIL in browser.text("table"), "revoked keys are not listed")
    assert not browser.has("button.revoke")
    assert nothing_ran(browser, "Keys")
    assert browser.errors() == []


def test_a_key_that_may_ask_for_faults_is_made(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "keys")
    browser.until(lambda: "your key" in browser.text("table"), "the first key is not listed")
    browser.press("New key")
    browser.fill(browser.labelled("Name"), "drills")
    browser.click("#key-admin")
    browser.click("#key-faults")
    browser.click("#key-admin")
    browser.press("Create", "dialog")
    browser.until(lambda: browser.text("#made-key").startswith("pk_"), "no key is shown")
    key = browser.text("#made-key")
    browser.press("Done", "dialog")
    browser.until(lambda: "faults" in browser.text("tbody tr"), "the scope is not listed")
    assert served.call("GET", "/v1/key", key=key).json["scopes"] == ["faults"]
    fault = {"x-service-fault": "atelier=503"}
    assert served.call("POST", "/compat/v1/images/generations", IMAGE, key=key, headers=fault).status >= 500
    assert browser.errors() == []


def test_a_key_without_the_admin_scope_can_only_look(served: Serving, browser: Browser) -> None:
    plain = served.call("POST", "/v1/keys", {"name": "plain"}).json["key"]
    sign_in(browser, served.url, plain, "keys")
    browser.until(lambda: "plain" in browser.text("table"), "keys are not listed")
    assert "admin scope" in browser.text("main")
    assert not browser.has("#new-key")
    assert "Providers" not in browser.text("nav")


def test_revoking_ones_own_key_signs_out(served: Serving, browser: Browser) -> None:
    own = served.call("POST", "/v1/keys", {"name": "own", "scopes": ["admin"]}).json["key"]
    sign_in(browser, served.url, own, "keys")
    browser.until(lambda: browser.has("button.revoke"), "the key is not listed")
    browser.click("tbody tr:first-child button.revoke")
    browser.until(lambda: "will be signed out" in browser.text("dialog"), "nothing warns")
    browser.press("Revoke", "dialog")
    browser.until(lambda: browser.has("#refusal"), "the page goes on with a revoked key")
    assert is_nowhere(browser, own)


def test_a_recording_is_shown_exported_deleted_and_imported(served: Serving, browser: Browser) -> None:
    key = served.call("POST", "/v1/keys", {"replay_mode": "record"}).json["key"]
    assert served.call("POST", "/compat/v1/images/generations", {**IMAGE, "prompt": EVIL}, key=key).status == 200
    [recording] = served.call("GET", "/v1/recordings").json["data"]
    saved = browser.downloads / f"{recording['id']}.json"
    sign_in(browser, served.url, served.key, "recordings")
    browser.until(lambda: EVIL in browser.text("table"), "the recording is not listed")
    assert nothing_ran(browser, "Recordings")
    browser.click("button.show")
    browser.until(
        lambda: browser.run("return document.querySelector('#recorded img')?.naturalWidth") == 256, "no image"
    )
    assert EVIL in browser.text("dialog")
    browser.press("Close", "dialog")
    browser.click("button.export")
    browser.until(saved.exists, "no file is saved")
    browser.click("button.delete")
    browser.until(lambda: recording["id"] in browser.text("dialog"), "the question does not name the recording")
    browser.press("Delete", "dialog")
    browser.until(lambda: "No recordings" in browser.text("main"), "the recording is still listed")
    assert served.call("GET", f"/v1/recordings/{recording['id']}").status == 404
    browser.type("#import", str(saved))
    browser.until(lambda: EVIL in browser.text("table"), "the file is not imported")
    saved.write_text("not a recording")
    browser.type("#import", str(saved))
    browser.until(lambda: "is not valid JSON" in browser.text("main .notice.bad"), "no word about a bad file")
    assert browser.errors() == []


def test_the_webhook_secret_is_shown_on_request(served: Serving, browser: Browser) -> None:
    secret = served.call("GET", "/v1/webhooks/secret").json["key"]
    sign_in(browser, served.url, served.key, "webhooks")
    browser.until(lambda: browser.has("#show-secret"), "no button")
    assert is_nowhere(browser, secret)
    browser.click("#show-secret")
    browser.until(lambda: browser.text("#secret") == secret, "the secret is not shown")
    browser.click("#hide-secret")
    browser.until(lambda: is_nowhere(browser, secret), "the secret is still on the page")


def test_the_limits_of_a_key_are_edited(served: Serving, browser: Browser) -> None:
    made = served.call("POST", "/v1/keys", {"name": "shop", "requests_per_minute": 5}).json
    sign_in(browser, served.url, served.key, "keys")
    browser.until(lambda: "5 per minute" in browser.text("table"), "the limit is not shown")
    browser.click("tbody tr:first-child button.edit")
    browser.fill(browser.labelled("Name"), "shop backend")
    browser.fill(browser.labelled("Requests per minute"), "")
    browser.fill(browser.labelled("US dollars per day"), "2.5")
    browser.fill(browser.labelled("Allowed models"), "atelier/* lab/chat")
    browser.fill(browser.labelled("Expires"), "2036-01-31")
    browser.press("Save", "dialog")
    browser.until(lambda: "of $2.50" in browser.text("table"), "the new limit is not shown")
    key = served.call("GET", f"/v1/keys/{made['id']}").json
    expected = {
        "name": "shop backend",
        "requests_per_minute": None,
        "usd_per_day": 2.5,
        "models": ["atelier/*", "lab/chat"],
    }
    assert {name: key[name] for name in expected} == expected
    assert key["expires_at"].startswith("2036-01-31T00:00:00")
    browser.click("tbody tr:first-child button.edit")
    browser.fill(browser.labelled("Requests per minute"), "3000000000")
    browser.press("Save", "dialog")
    browser.until(lambda: "requests_per_minute" in browser.text("dialog .wrong"), "the fault is not at its field")
    assert browser.errors() == []


@contextmanager
def receiver() -> Iterator[tuple[str, list[str], list[int]]]:
    """A receiver of webhooks on loopback: its URL, the ids of the messages that it got, and its next statuses."""
    got: list[str] = []
    statuses: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            got.append(self.headers["webhook-id"])
            self.send_response(statuses.pop(0) if statuses else 200)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", got, statuses
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_test_event_a_message_sent_again_and_a_rotated_secret(story: Installation, browser: Browser) -> None:
    allowed = {"PENSTOCK_EGRESS_ALLOW_HOSTS": "127.0.0.1", "PENSTOCK_WEBHOOK_DELAYS_SECONDS": "0.1"}
    with receiver() as (url, got, statuses), story.serving(**allowed) as served:
        sign_in(browser, served.url, served.key, "webhooks")
        browser.until(lambda: "No messages" in browser.text("main"), "the empty state is not shown")
        browser.fill(browser.labelled("Endpoint URL"), "https://10.0.0.1/hook")
        browser.press("Send a test event")
        browser.until(lambda: browser.has("form .wrong"), "the fault is not at its field")
        browser.fill(browser.labelled("Endpoint URL"), url)
        browser.press("Send a test event")
        browser.until(lambda: "Delivered" in browser.text("#test-result"), "the test event is not delivered")
        assert len(got) == 1

        statuses += [503, 503]
        video = {"model": "atelier/clip", "prompt": "x [fail]", "seconds": 1, "webhook_url": url}
        made = served.call("POST", "/compat/v1/videos", video).json
        browser.until(lambda: "Gave up" in browser.text("table"), "the message is not listed with its end")
        browser.click("button.details")
        browser.until(lambda: "503" in browser.text("dialog"), "the deliveries are not shown")
        browser.press("Send again", "dialog")
        browser.until(lambda: "Delivered" in browser.text("dialog"), "it is not sent again")
        assert got[1:] == [f"msg_{made['id']}"] * 3
        browser.press("Close", "dialog")

        statuses += [503, 503]
        served.call("POST", "/compat/v1/videos", video)
        browser.until(lambda: "Gave up" in browser.text("table"), "the second message is not listed with its end")
        browser.run(
            "const status = document.querySelector('select.narrow'); status.value = 'exhausted'; "
            "status.dispatchEvent(new Event('change', { bubbles: true }))"
        )
        browser.until(lambda: "Delivered" not in browser.text("table"), "the list is not filtered")
        browser.click("#redeliver-all")
        browser.press("Send", "dialog")
        browser.until(lambda: "No messages" in browser.text("main"), "it is not sent again")
        browser.until(lambda: len(got) == 7, "it does not arrive")

        before = served.call("GET", "/v1/webhooks/secret").json["key"]
        browser.press("Rotate")
        browser.press("Rotate", "dialog")
        browser.until(lambda: browser.text("#secret").startswith("whsec_"), "the new secret is not shown")
        assert browser.text("#secret") not in ("", before)
        assert "stays valid until" in browser.text("main")
        assert browser.errors() == []


def test_the_button_of_a_long_form_is_in_view_on_a_phone(served: Serving, browser: Browser) -> None:
    browser.resize(390, 640)
    sign_in(browser, served.url, served.key, "keys")
    browser.press("New key", "main")
    browser.until(lambda: browser.has("dialog #save-key"), "the form is not shown")
    edge = "return document.querySelector('#save-key').getBoundingClientRect().bottom"
    assert browser.run(edge) < browser.run("return document.querySelector('dialog').getBoundingClientRect().bottom")
