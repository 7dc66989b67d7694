"""The page of destinations: none, a bucket that is added after a check, one that fails, and a phone."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.s3_server import BUCKET, KEY_ID, SECRET, S3Server, run_s3_server
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with run_s3_server(tmp_path_factory.mktemp("buckets")) as s3:
        yield s3


def shoot(browser: Browser, name: str) -> None:
    """Save a screenshot where SCREENSHOTS says, to look at it."""
    if folder := os.environ.get("SCREENSHOTS"):
        browser.save_screenshot(Path(folder) / f"{name}.png")


@pytest.fixture
def served(story: Installation) -> Iterator[Serving]:
    """A server that may reach buckets on this machine."""
    with story.serving(PENSTOCK_EGRESS_ALLOW_HOSTS="127.0.0.1") as serving:
        yield serving


def test_a_bucket_is_added_after_a_check(served: Serving, browser: Browser, s3: S3Server) -> None:
    sign_in(browser, served.url, served.key, "destinations")
    browser.until(lambda: "No destinations yet" in browser.text("main"), "the empty state is not shown")
    shoot(browser, "destinations-empty")
    browser.press("Add a destination")
    for label, text in (
        ("Bucket and folder", f"s3://{BUCKET}/outputs"),
        ("Endpoint (optional)", s3.endpoint),
        ("Access key id", KEY_ID),
        ("Secret access key", "wrong"),
        ("Name (optional)", "archive"),
    ):
        browser.fill(browser.labelled(label), text)
    browser.press("Add", "dialog footer")
    browser.until(lambda: browser.has("dialog [role=alert]"), "the wrong key is not refused")
    shoot(browser, "destinations-refused")
    browser.fill(browser.labelled("Secret access key"), SECRET)
    browser.press("Add", "dialog footer")
    browser.until(lambda: "archive" in browser.text("main") and "Works" in browser.text("main"), "it is not listed")
    browser.run("document.querySelector(\"[aria-label='Check archive']\").click()")
    browser.until(lambda: "A file was written into archive and deleted." in browser.text("main"), "no check")
    browser.run("document.querySelector(\"[aria-label='Make default archive']\").click()")
    browser.until(lambda: "All calls" in browser.text("main"), "it is not the default")
    assert SECRET not in browser.text("body")
    shoot(browser, "destinations")
    browser.run("localStorage.setItem('theme', 'dark')")
    browser.resize(390, 844)
    browser.open("about:blank")
    browser.open(f"{served.url}/#/destinations")
    browser.until(lambda: "archive" in browser.text("main"), "the page is not shown on a phone")
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    shoot(browser, "destinations-phone-dark")
    browser.resize(1280, 840)
    browser.run("localStorage.removeItem('theme')")
    browser.run("document.querySelector(\"[aria-label='Delete archive']\").click()")
    browser.press("Delete", "dialog footer")
    browser.until(lambda: "No destinations yet" in browser.text("main"), "it is not deleted")
    assert browser.errors() == []
