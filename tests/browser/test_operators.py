"""The pages for operators: organizations and their credit, settings, and a check of a provider."""

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def test_an_organization_gets_credit_and_a_key(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "organizations")
    browser.until(lambda: browser.has("tbody tr"), "the first organization is not listed")
    browser.press("New organization")
    browser.fill(browser.labelled("Name"), "Northwind")
    browser.press("Create", "dialog")
    browser.until(lambda: "Northwind" in browser.text("table"), "the new organization is not listed")
    [org] = [org for org in served.call("GET", "/v1/orgs").json["data"] if org["name"] == "Northwind"]
    before = org["available"]
    browser.click("button.add-credit[aria-label='Add credit to Northwind']")
    browser.fill(browser.labelled("US dollars"), "12.5")
    browser.fill(browser.labelled("Note (optional)"), "invoice 7")
    browser.press("Add", "dialog")
    browser.until(lambda: not browser.has("dialog"), "the credit is not added")
    [org] = [org for org in served.call("GET", "/v1/orgs").json["data"] if org["name"] == "Northwind"]
    assert org["available"] == before + 12.5
    browser.run("document.querySelector(\"[aria-label='Limits of Northwind']\").click()")
    browser.fill(browser.labelled("US dollars per month"), "250")
    browser.fill(browser.labelled("Bytes of stored files"), "1000000")
    browser.press("Save", "dialog")
    browser.until(lambda: "of $250" in browser.text("table"), "the budget is not shown")
    limited = served.call("GET", f"/v1/orgs/{org['id']}").json
    assert (limited["usd_per_month"], limited["storage_bytes"]) == (250, 1_000_000)
    browser.run("document.querySelector(\"[aria-label='New key for Northwind']\").click()")
    browser.fill(browser.labelled("Name"), "their first key")
    browser.press("Create", "dialog")
    browser.until(lambda: browser.text("dialog pre").startswith("pk_"), "no key is shown")
    balance = served.call("GET", "/v1/balance", key=browser.text("dialog pre")).json
    assert balance["available"]["amount"] == org["available"]
    assert browser.errors() == []


ROWS = """
const texts = (row) => [...row.cells].map((cell) => cell.innerText);
return [...document.querySelectorAll('tbody tr')].map(texts).filter(([first]) => first.startsWith(arguments[0]))
"""


def test_the_audit_log_shows_who_did_what(served: Serving, browser: Browser) -> None:
    made = served.call("POST", "/v1/keys", {"name": "of a test"}).json
    served.call("PATCH", f"/v1/keys/{made['id']}", {"usd_per_day": 3})
    sign_in(browser, served.url, served.key, f"audit-log?target={made['id']}")
    browser.until(lambda: "key.changed" in browser.text("table"), "the change is not listed")
    [changed, created] = browser.run("return [...document.querySelectorAll('tbody tr')].map((row) => row.innerText)")
    assert "usd_per_day" in changed
    assert "key.created" in created
    browser.press("key.changed")
    browser.until(lambda: "usd_per_day: – → 3" in browser.text("dialog"), "the values are not shown")
    browser.press("Close", "dialog footer")
    browser.fill("input[type=search]", "key.revoked")
    browser.until(lambda: "Nothing matches" in browser.text("main"), "the filter does nothing")
    assert browser.errors() == []


def test_settings_show_their_value_and_origin_and_no_secret(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "settings")
    browser.until(lambda: "poll_seconds_max" in browser.text("table"), "the settings are not listed")
    [unset] = browser.run(ROWS, "public_url")
    assert unset[1:3] == ["not set", "Default"]
    browser.click("input[type=checkbox]")
    browser.until(lambda: "lease_seconds" in browser.text("table"), "a changed setting is not shown")
    text = browser.text("table")
    assert "Environment" in text
    assert "image_wait_seconds" not in text


def test_a_provider_is_checked_with_a_real_call(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "providers")
    browser.until(lambda: bool(browser.run(ROWS, "")), "the providers are not listed")
    names = [name.lower() for name, *_ in browser.run(ROWS, "")]
    assert names == sorted(names)
    browser.press("Check Atelier now")
    browser.until(lambda: "It costs about $" in browser.text("dialog"), "no price is shown before")
    assert served.call("GET", "/v1/requests").json["data"] == []
    browser.press("Make the call", "dialog")
    browser.until(lambda: "It works." in browser.text("main"), "the outcome is not shown")
    [request] = served.call("GET", "/v1/requests").json["data"]
    assert request["provider"] == "atelier"
    assert browser.errors() == []
