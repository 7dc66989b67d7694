"""The library in a browser: a wall, found by words; a lightbox with lineage, favorites, keeping and links that end."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

FOX, BOAT, NIGHT = "a fox in a snowy forest", "a sailing boat at sunset", "make it a starry night"
TILES = "return document.querySelectorAll('.wall .tile').length"


def read(url: str) -> bytes:
    with urlopen(url, timeout=20) as response:  # noqa: S310
        data: bytes = response.read()
        return data


def make(served: Serving) -> dict[str, Any]:
    """Two images and an edit of the first; their outputs by prompt."""
    for prompt in (FOX, BOAT):
        body = {"model": "atelier/sketch", "prompt": prompt, "size": "256x256"}
        served.call("POST", "/compat/v1/images/generations", body)
    [fox] = served.call("GET", "/v1/outputs?search=fox").json["data"]
    image = "data:image/png;base64," + base64.b64encode(read(fox["url"])).decode()
    edit = {"model": "atelier/retouch", "prompt": NIGHT, "image": [image], "size": "256x256"}
    served.call("POST", "/compat/v1/images/edits", edit)
    return {output["prompt"]: output for output in served.call("GET", "/v1/outputs").json["data"]}


def open_tile(browser: Browser, words: str) -> None:
    browser.click(f'[aria-label="Open: {words}"]')
    browser.until(lambda: browser.has("dialog.lightbox .told"), "the result is not shown")


def told(browser: Browser) -> str:
    return browser.text("dialog.lightbox .told")


def test_results_are_found_by_words_and_lead_to_each_other(served: Serving, browser: Browser) -> None:
    make(served)
    sign_in(browser, served.url, served.key, "library")
    browser.until(lambda: browser.run(TILES) == 3, "not everything is on the wall")
    browser.type(browser.labelled("Search"), "FOX snowy")
    browser.until(lambda: browser.run(TILES) == 1, "the words do not filter")
    assert "search=FOX" in browser.run("return location.hash")
    open_tile(browser, FOX)
    browser.until(lambda: "Make again · $" in told(browser), "there is no price of today")
    browser.until(lambda: browser.has(f'[aria-label="Used in: {NIGHT}"]'), "the edit is not shown")
    browser.click(f'[aria-label="Used in: {NIGHT}"]')
    browser.until(lambda: NIGHT in told(browser), "the edit does not open")
    browser.until(lambda: browser.has(f'[aria-label="Made from: {FOX}"]'), "the way back is not shown")
    browser.click("dialog.lightbox header [aria-label=Close]")
    browser.until(lambda: not browser.has("dialog"), "the lightbox does not close")
    browser.open(f"{served.url}/#/library?search=zebra")
    browser.until(lambda: "Nothing matches" in browser.text("main"), "an empty search is not explained")


def test_the_arrow_keys_turn_the_pages(served: Serving, browser: Browser) -> None:
    make(served)
    sign_in(browser, served.url, served.key, "library")
    browser.until(lambda: browser.run(TILES) == 3, "not everything is on the wall")
    open_tile(browser, NIGHT)
    turn = "document.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))"
    for key, words in (("ArrowRight", BOAT), ("ArrowRight", FOX), ("ArrowRight", FOX), ("ArrowLeft", BOAT)):
        browser.run(turn.replace("document.dispatch", "document.body.dispatch"), key)
        browser.until(lambda words=words: words in told(browser), f"{key} does not lead to {words}")  # type: ignore[misc]


def test_a_result_is_marked_kept_and_shared_until_its_link_is_revoked(served: Serving, browser: Browser) -> None:
    output = make(served)[FOX]
    path = f"/v1/outputs/{output['id']}"
    sign_in(browser, served.url, served.key, "library")
    browser.until(lambda: browser.run(TILES) == 3, "not everything is on the wall")
    open_tile(browser, FOX)
    browser.click(".told [aria-label=Favorite]")
    browser.until(lambda: bool(served.call("GET", path).json["favorite"]), "the result is no favorite")
    keep = (
        "const list = document.querySelector(arguments[0]); list.value = '30d'; list.dispatchEvent(new Event('change'))"
    )
    browser.run(keep, browser.labelled("Keep longer"))
    later = datetime.now(UTC) + timedelta(days=29)
    browser.until(
        lambda: datetime.fromisoformat(served.call("GET", path).json["expires_at"]) > later, "it is not kept longer"
    )
    browser.click("#share summary")
    browser.press("Create link")
    shared = '.told input[aria-label="Shared link"]'
    browser.until(lambda: browser.has(shared), "no link is created")
    url = browser.value(shared)
    assert len(read(url)) == output["size_bytes"]
    browser.press("Revoke all links")
    browser.until(lambda: "no longer work" in told(browser), "the links are not revoked")
    with pytest.raises(HTTPError, match="403") as refused:
        read(url)
    refused.value.close()
