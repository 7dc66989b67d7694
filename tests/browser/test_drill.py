"""The page that routes past requests again without a provider."""

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def choose(browser: Browser, name: str, words: str) -> None:
    browser.run(
        "const select = document.querySelector(`select[name=${arguments[0]}]`);"
        "select.value = [...select.options].find((option) => option.text === arguments[1]).value;"
        "select.dispatchEvent(new Event('change', { bubbles: true }))",
        name,
        words,
    )


def test_an_outage_of_the_only_provider_fails_what_callers_wait_for(served: Serving, browser: Browser) -> None:
    for _ in range(2):
        image = {"model": "atelier/sketch", "prompt": "a pear", "size": "64x64"}
        assert served.call("POST", "/compat/v1/images/generations", image).status == 200
    sign_in(browser, served.url, served.key, "drill")
    browser.until(lambda: browser.has("#failed") and browser.text("#failed") == "2", "nothing fails without a provider")
    assert "atelier/sketch" in browser.text("table")
    assert browser.text("#cost-then") == "$0.00"
    choose(browser, "fault", "costs twice as much")
    browser.until(lambda: browser.text("#failed") == "0", "a dear provider fails")
    browser.until(lambda: browser.text("#cost-then") not in ("", "$0.00"), "it costs nothing")
    assert browser.errors() == []
