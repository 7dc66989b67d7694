"""Keys of one's own on the page of keys, their limits on that of people, and signing out everywhere."""

import asyncio
import os
from pathlib import Path

import pytest

from penstock.app.opening import open_store_and_vault
from penstock.clock import Clock
from penstock.people.configured import Role, RoleRule
from penstock.people.oidc import Identity
from penstock.people.sessions import Sessions
from penstock.people.users import Users
from penstock.settings import Settings
from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def shoot(browser: Browser, name: str) -> None:
    """Save a screenshot where SCREENSHOTS says, to look at it."""
    if folder := os.environ.get("SCREENSHOTS"):
        browser.save_screenshot(Path(folder) / f"{name}.png")


async def session(data: Path, role: Role) -> str:
    """What the cookie of somebody with this role holds."""
    async with open_store_and_vault(Settings(data=data)) as (store, _):
        rule = RoleRule(role=role, org="default", group="media")
        identity = Identity(
            "https://issuer.example", role, f"{role}@studio.example", True, "Anna", frozenset({"media"})
        )
        caller = await Users(store, Clock()).enter(identity, (rule,), None)
        return (await Sessions(store, Clock(), 1.0).begin(caller, None, "", keep=False)).token


def sign_in_as(browser: Browser, served: Serving, story: Installation, role: Role, page: str) -> None:
    token = asyncio.run(session(story.data, role))
    if browser.has("#sign-out"):  # the cookie of that session cannot be replaced by a script
        browser.click("#sign-out")
        browser.until(lambda: browser.has("#sign-in"), "the session goes on")
    browser.open(served.url + "/healthz")
    browser.run(f"document.cookie = 'penstock-{served.url.rpartition(':')[2]}={token}; path=/'")
    browser.open(f"{served.url}/#/{page}")
    browser.until(lambda: browser.has("#sign-out"), "the session is not taken")


def test_a_member_makes_and_revokes_keys(served: Serving, story: Installation, browser: Browser) -> None:
    limits = {"keys": 2, "days": 30, "usd_per_month": 20, "models": ["atelier/*"]}
    assert served.call("PUT", "/v1/own-key-limits", limits).status == 200
    sign_in_as(browser, served, story, "member", "keys")
    browser.until(lambda: "You have no keys" in browser.text("main"), "the empty state is not shown")
    assert "up to 2 keys for 30 days, each with $20.00 a month, for atelier/*" in browser.text("main")
    shoot(browser, "own-keys-empty")
    browser.press("New key of mine")
    browser.fill(browser.labelled("Name"), "laptop")
    browser.fill(browser.labelled("US dollars per month"), "21")
    browser.press("Create", "dialog")
    browser.until(lambda: "must be at most 20 USD" in browser.text("dialog"), "the high limit is not refused")
    shoot(browser, "own-keys-refused")
    browser.fill(browser.labelled("US dollars per month"), "5")
    browser.press("Create", "dialog")
    browser.until(lambda: browser.has("#made-key"), "the key is not shown")
    key = browser.text("#made-key")
    assert served.call("GET", "/v1/key", key=key).status == 200
    browser.press("Done", "dialog")
    browser.until(lambda: "laptop" in browser.text("[aria-label='Your keys']"), "the key is not listed")
    shoot(browser, "own-keys")
    browser.resize(390, 844)
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    browser.run("localStorage.setItem('theme', 'dark'); location.reload()")
    browser.until(lambda: "laptop" in browser.text("[aria-label='Your keys']"), "the page is not shown on a phone")
    shoot(browser, "own-keys-phone-dark")
    browser.resize(1280, 800)
    browser.click(".revoke-own")
    browser.press("Revoke", "dialog footer")
    browser.until(lambda: "You have no keys" in browser.text("main"), "the key is not revoked")
    assert served.call("GET", "/v1/key", key=key).status == 401
    assert browser.errors() == []


def test_signing_out_everywhere_says_that_keys_go_too(served: Serving, story: Installation, browser: Browser) -> None:
    sign_in_as(browser, served, story, "member", "keys")
    browser.press("New key of mine")
    browser.press("Create", "dialog")
    browser.until(lambda: browser.has("#made-key"), "the key is not shown")
    key = browser.text("#made-key")
    browser.press("Done", "dialog")
    browser.click("#sign-out-everywhere")
    browser.until(lambda: "keys that you have made" in browser.text("dialog"), "nothing is asked")
    shoot(browser, "sign-out-everywhere")
    browser.press("Sign out everywhere", "dialog footer")
    browser.until(lambda: browser.has("#sign-in"), "the sign-in page is not shown")
    assert served.call("GET", "/v1/key", key=key).status == 401


def test_an_admin_limits_the_keys_of_people(served: Serving, story: Installation, browser: Browser) -> None:
    asyncio.run(session(story.data, "member"))
    sign_in(browser, served.url, served.key, "people")
    browser.press("Limits of their keys")
    browser.fill(browser.labelled("Keys per person"), "0")
    browser.fill(browser.labelled("US dollars per day"), "2.5")
    browser.fill(browser.labelled("Allowed models"), "atelier/* x")
    shoot(browser, "own-key-limits")
    browser.press("Save", "dialog")
    browser.until(lambda: not browser.has("dialog"), "the dialog stays")
    limits = served.call("GET", "/v1/own-key-limits").json
    assert (limits["keys"], limits["usd_per_day"], limits["models"]) == (0, 2.5, ["atelier/*", "x"])
    sign_in_as(browser, served, story, "member", "keys")
    browser.until(lambda: "lets nobody make keys" in browser.text("main"), "the rule is not told")
    assert not browser.has("#new-own-key")
