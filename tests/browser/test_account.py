"""The pages for keys, recordings and webhooks in a real browser, with names that contain markup."""

import pytest

from tests.browser.chromium import Browser, come_in
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

EVIL = "<img src=x onerror=document.title='gone'>"
ENTER, ESCAPE, PASTE = "\ue007", "\ue00c", "\ue009v"  # as the protocol writes keys


def turn_to(browser: Browser, page: str) -> None:
    """Uses the keyboard only."""
    browser.type(f"nav a[href='#{page}']", ENTER)
    browser.until(lambda: not browser.run("return document.getElementById(arguments[0]).hidden", f"{page}-page"), page)


def is_nowhere(browser: Browser, secret: str) -> bool:
    fields = "[...document.querySelectorAll('input')].map((one) => one.value).join()"
    held = browser.run(f"return document.documentElement.outerHTML + {fields} + JSON.stringify(sessionStorage)")
    return secret not in held


def nothing_ran(browser: Browser, title: str) -> bool:
    found = browser.run("return [document.title, document.querySelectorAll('main img, main b, main script').length]")
    return bool(found == [title, 0])


def test_a_key_is_shown_once_works_and_is_revoked(served: Serving, browser: Browser) -> None:
    come_in(browser, served.url, served.key)
    turn_to(browser, "keys")
    browser.until(lambda: "(your key)" in browser.text("#keys-list"), "the first key is not listed")
    browser.type("#key-name", EVIL)
    browser.type("#key-minute", "1")
    browser.click("#new-key button")
    browser.until(lambda: browser.value("#made-key") != "", "no key is shown")
    key = browser.value("#made-key")
    browser.click("#copy-key")
    browser.until(lambda: browser.text("#key-said") == "Copied.", "it is not copied")
    browser.type("#key-name", PASTE)
    assert browser.value("#key-name") == key
    browser.run("document.getElementById('key-name').value = ''")
    browser.click("#hide-key")
    assert is_nowhere(browser, key)

    body = {"model": "atelier/sketch", "prompt": "a pear", "size": "256x256"}
    statuses = [served.call("POST", "/compat/v1/images/generations", body, key=key).status for _ in range(2)]
    assert statuses == [200, 429]  # the limit came with it
    browser.until(lambda: EVIL in browser.text("#keys-list tr:first-child"), "the new key is not listed")
    browser.click("#keys-list tr:first-child button.bad")
    assert EVIL in browser.text("#question")
    browser.type("#no", ESCAPE)
    assert served.call("GET", "/v1/balance", key=key).status == 200
    browser.click("#keys-list tr:first-child button.bad")
    browser.click("#yes")
    browser.until(lambda: EVIL not in browser.text("#keys-list"), "the revoked key is still listed")
    assert served.call("GET", "/v1/balance", key=key).status == 401
    assert served.call("GET", "/v1/balance").status == 200

    browser.type("#key-status", "revoked")
    browser.until(lambda: EVIL in browser.text("#keys-list"), "revoked keys are not listed")
    assert "never" not in browser.text("#keys-list")
    assert browser.run("return document.querySelectorAll('#keys-list button.bad').length") == 0
    assert nothing_ran(browser, "Keys · Penstock")
    assert [line for line in browser.log() if line["level"] == "SEVERE"] == []


def test_keys_need_the_admin_scope_and_revoking_ones_own_signs_out(served: Serving, browser: Browser) -> None:
    others = [served.call("POST", "/v1/keys", {"name": f"plain {number}"}).json for number in range(20)]
    plain = others[0]["key"]
    come_in(browser, served.url, plain)
    turn_to(browser, "keys")
    browser.until(lambda: "does not have the admin scope" in browser.text("#keys-page"), "nothing is said")
    assert "New key" not in browser.text("#keys-page")
    browser.click("#leave")

    own = served.call("POST", "/v1/keys", {"name": "own", "scopes": ["admin"]}).json["key"]
    come_in(browser, served.url, own)
    turn_to(browser, "keys")
    browser.until(lambda: "own (your key)" in browser.text("#keys-list tr:first-child"), "the newest key is not first")
    browser.click("#keys-older")  # two are there, and both go
    browser.until(lambda: "plain 0" in browser.text("#keys-list tr:first-child"), "the page is not turned")
    served.call("DELETE", f"/v1/keys/{others[0]['id']}")
    browser.click("#keys-list tr:last-child button.bad")
    browser.click("#yes")
    browser.until(lambda: "own (your key)" in browser.text("#keys-list tr:first-child"), "an empty page is stayed on")
    browser.click("#keys-list tr:first-child button.bad")
    assert "will be signed out" in browser.text("#question")
    browser.click("#yes")
    browser.until(lambda: browser.text("#refusal") != "", "the page goes on with a revoked key")
    assert browser.run("return [sessionStorage.length, document.getElementById('house').hidden]") == [0, True]
    assert is_nowhere(browser, own)


def test_a_recording_is_shown_exported_deleted_and_imported(served: Serving, browser: Browser) -> None:
    key = served.call("POST", "/v1/keys", {"replay_mode": "record"}).json["key"]
    body = {"model": "atelier/sketch", "prompt": EVIL, "size": "256x256"}
    assert served.call("POST", "/compat/v1/images/generations", body, key=key).status == 200
    [recording] = served.call("GET", "/v1/recordings").json["data"]
    saved = browser.downloads / f"{recording['id']}.json"

    come_in(browser, served.url, served.key)
    turn_to(browser, "recordings")
    browser.until(lambda: EVIL in browser.text("#recordings-list"), "the recording is not listed")
    assert "atelier/sketch" in browser.text("#recordings-list")
    assert nothing_ran(browser, "Recordings · Penstock")
    browser.click(f"#recordings-list button[value='{recording['id']}']")
    browser.until(lambda: browser.run("return document.querySelector('#seen img')?.naturalWidth") == 256, "no image")
    assert EVIL in browser.text("#record")
    browser.type("#detail button", ENTER)
    browser.click("#recordings-list button[aria-label^='Export']")
    browser.until(saved.exists, "no file is saved")

    browser.click("#recordings-list button.bad")
    assert recording["id"] in browser.text("#question")
    browser.click("#yes")
    browser.until(lambda: "No recordings" in browser.text("#recordings-page"), "the recording is still listed")
    assert served.call("GET", f"/v1/recordings/{recording['id']}").status == 404
    browser.type("#brought", str(saved))
    browser.until(lambda: EVIL in browser.text("#recordings-list"), "the file is not brought in")
    assert served.call("GET", f"/v1/recordings/{recording['id']}").status == 200
    saved.write_text("not a recording")
    browser.type("#brought", str(saved))
    browser.until(lambda: browser.text("#recordings-said") == "The file is not valid JSON.", "no word about a bad file")
    assert browser.run("return document.title") == "Recordings · Penstock"
    assert [line for line in browser.log() if line["level"] == "SEVERE"] == []


def test_the_webhook_secret_is_shown_on_request(served: Serving, story: Installation, browser: Browser) -> None:
    secret = served.call("GET", "/v1/webhooks/secret").json["key"]
    come_in(browser, served.url, served.key)
    turn_to(browser, "webhooks")
    assert is_nowhere(browser, secret)
    browser.type("#show-secret", ENTER)
    browser.until(lambda: browser.value("#secret") == secret, "the secret is not shown")
    browser.type("#hide-secret", ENTER)
    assert is_nowhere(browser, secret)

    rotated = story.penstock("webhooks", "rotate").stdout.strip()
    assert rotated.startswith("whsec_")
    browser.click("#show-secret")
    browser.until(lambda: browser.value("#secret") == rotated, "the new secret is not shown")
    browser.click("#copy-secret")
    browser.until(lambda: browser.text("#secret-said") == "Copied.", "it is not copied")
    browser.click("#leave")
    assert is_nowhere(browser, rotated)
    assert [line for line in browser.log() if line["level"] == "SEVERE"] == []
