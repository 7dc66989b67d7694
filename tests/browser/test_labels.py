"""The page of labels: declaring one, budgets with their state, and accounts below it on the page of providers."""

import os
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def shoot(browser: Browser, name: str) -> None:
    """Save a screenshot where SCREENSHOTS says, to look at it."""
    if folder := os.environ.get("SCREENSHOTS"):
        browser.save_screenshot(Path(folder) / f"{name}.png")


def test_labels_are_declared_and_budgets_show_their_state(served: Serving, browser: Browser) -> None:
    served.call("PUT", "/v1/labels", {"declared_labels": []})
    sign_in(browser, served.url, served.key, "labels")
    browser.until(lambda: "No labels yet" in browser.text("main"), "the empty state is not shown")
    shoot(browser, "labels-empty")
    browser.press("Declare a label")
    browser.fill(browser.labelled("Name"), "Not A Name")
    browser.press("Declare", "dialog")
    browser.until(lambda: browser.has("dialog [role=alert]"), "the bad name is not refused")
    browser.fill(browser.labelled("Name"), "customer")
    browser.press("Declare", "dialog")
    browser.until(lambda: "No budgets" in browser.text("main"), "the label is not listed")
    for customer, usd in (("acme", 1), ("northwind", 0.000001), ("*", 5)):
        path = f"/v1/label-budgets/customer/{customer}"
        assert served.call("PUT", path, {"usd_per_month": usd}).status == 200
    for customer in ("acme", "globex"):
        body = {"model": "atelier/sketch", "prompt": "a fox", "size": "64x64", "labels": {"customer": customer}}
        assert served.call("POST", "/compat/v1/images/generations", body).status == 200
    browser.open("about:blank")
    browser.open(f"{served.url}/#/labels")
    browser.until(lambda: "globex" in browser.text("main"), "the values of the budget for each are not listed")
    text = browser.text("main")
    assert "Each value" in text
    assert "by the budget of each value" in text
    assert "Within" in text
    shoot(browser, "labels")
    browser.press("New budget")
    browser.fill(browser.labelled("Value"), "initech")
    browser.fill(browser.labelled("US dollars per month"), "0")
    browser.press("Save", "dialog")
    browser.until(lambda: "initech" in browser.text("main") and "Used up" in browser.text("main"), "no new budget")
    browser.run("document.querySelector(\"[aria-label='Remove initech']\").click()")
    browser.press("Remove", "dialog footer")
    browser.until(lambda: "initech" not in browser.text("main"), "the budget is not removed")
    browser.run("localStorage.setItem('theme', 'dark')")
    browser.resize(390, 844)
    browser.open("about:blank")
    browser.open(f"{served.url}/#/labels")
    browser.until(lambda: "globex" in browser.text("main"), "the page is not shown on a phone")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    shoot(browser, "labels-phone-dark")
    browser.resize(1280, 840)
    browser.run("localStorage.removeItem('theme')")
    served.call("PUT", "/v1/labels", {"declared_labels": []})
    assert browser.errors() == []


def test_accounts_show_their_limits_and_health(served: Serving, browser: Browser) -> None:
    body = {"provider": "fal", "name": "eu", "credential": "fal-key-of-a-page", "concurrent": 4}
    served.call("POST", "/v1/accounts", body)
    sign_in(browser, served.url, served.key, "providers")
    browser.until(lambda: "0 of 4 open" in browser.text("main"), "the limit is not shown")
    browser.press("Add an account")
    browser.fill(browser.labelled("Name"), "from the page")
    browser.fill(browser.labelled("Credential"), "a-key-that-was-typed")
    browser.fill(browser.labelled("US dollars per month (optional)"), "7")
    browser.press("Add", "dialog footer")
    browser.until(lambda: "from the page" in browser.text("main"), "the new account is not listed")
    assert "$0.00 of $7.00" in browser.text("main")
    assert "a-key-that-was-typed" not in browser.text("main")
    shoot(browser, "accounts")
    browser.resize(390, 844)
    browser.run("localStorage.setItem('theme', 'dark')")
    browser.open("about:blank")
    browser.open(f"{served.url}/#/providers")
    browser.until(lambda: "0 of 4 open" in browser.text("main"), "the account is not shown on a phone")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    shoot(browser, "accounts-phone-dark")
    browser.resize(1280, 840)
    browser.run("localStorage.removeItem('theme')")
    for account in served.call("GET", "/v1/accounts").json["data"]:
        served.call("DELETE", f"/v1/accounts/{account['id']}")
    assert browser.errors() == []


def test_admins_are_told_that_the_operator_takes_no_accounts_of_theirs(served: Serving, browser: Browser) -> None:
    key = served.call("POST", "/v1/keys", {"name": "an admin", "scopes": ["admin"]}).json["key"]
    sign_in(browser, served.url, key, "providers")
    browser.until(lambda: "No accounts here" in browser.text("main"), "the empty state is not shown")
    shoot(browser, "accounts-of-admins")
