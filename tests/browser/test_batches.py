"""The page of batches: progress, pausing, cancelling, results."""

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


def test_a_batch_is_followed_resumed_and_cancelled(served: Serving, browser: Browser) -> None:
    row = {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}
    body = {"endpoint": "/v1/images/generations", "requests": [row, row], "start": False, "name": "fruit"}
    first = served.call("POST", "/v1/batches", body).json
    served.call("POST", "/v1/batches", {**body, "name": "more fruit"})

    sign_in(browser, served.url, served.key, "batches")
    browser.until(lambda: "more fruit" in browser.text("main"), "the batches are not listed")
    assert "0 of 2 rows" in browser.text("main")
    browser.click(f'button[aria-label="Details of {first["name"]}"]')
    browser.until(lambda: "not started yet" in browser.text("[role=dialog], dialog"), "it does not say why it waits")
    browser.click("#resume")
    browser.until(lambda: "2 of 2 rows" in browser.text("[role=dialog], dialog"), "its progress is not shown")
    browser.until(lambda: "Completed" in browser.text("[role=dialog], dialog"), "its end is not shown")
    assert browser.errors() == []


def test_a_batch_whose_budget_is_used_up_gets_another_one(served: Serving, browser: Browser) -> None:
    row = {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}
    body = {"endpoint": "/v1/images/generations", "requests": [row], "name": "fruit", "max_cost": 0.0001}
    served.call("POST", "/v1/batches", body)

    sign_in(browser, served.url, served.key, "batches")
    browser.until(lambda: "fruit" in browser.text("main"), "the batch is not listed")
    browser.click('button[aria-label="Details of fruit"]')
    browser.until(lambda: browser.has("input[name=budget]"), "it asks for no budget")
    browser.fill("input[name=budget]", "0.5")
    browser.click("#resume")
    browser.until(lambda: "Completed" in browser.text("[role=dialog], dialog"), "it does not go on")
    assert "$0.50" in browser.text("[role=dialog], dialog")
    assert browser.errors() == []
