"""The list of requests, and the page of one request."""

import csv
import json
from collections.abc import Callable

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

IMAGE = {"model": "atelier/sketch", "prompt": "a lighthouse at dusk, calm sea", "size": "256x256"}


CHAT = {"model": "atelier/echo", "messages": [{"role": "user", "content": "hello"}], "user": "customer-7"}


def filtered(browser: Browser, rows: str, shown: str, hidden: str) -> Callable[[], bool]:
    def met() -> bool:
        text = browser.run(rows)
        return shown in text and hidden not in text

    return met


def test_requests_appear_by_themselves_and_are_filtered(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "requests")
    browser.until(lambda: "No requests yet" in browser.text("main"), "the empty state is not shown")
    served.call("POST", "/compat/v1/images/generations", IMAGE)
    served.call("POST", "/compat/v1/chat/completions", CHAT)
    served.call(
        "POST", "/compat/v1/images/generations", {**IMAGE, "model": "no/such"}
    )  # like no other, so that none is proposed
    browser.until(lambda: "3 requests" in browser.text("#sum"), "new requests do not appear")
    browser.fill(browser.labelled("Status"), "rejected")
    browser.until(lambda: "1 request," in browser.text("#sum"), "the filter does nothing")
    assert "atelier/sketch" not in browser.text("table")
    assert browser.run("return location.hash") == "#/requests?status=rejected"
    browser.fill(browser.labelled("Status"), "")
    for label, value, shown, hidden in (
        ("Kind", "chat", "atelier/echo", "atelier/sketch"),
        ("Model", "atelier/sketch", "atelier/sketch", "atelier/echo"),
        ("Provider", "atelier", "atelier/sketch", "no/such"),
        ("Search", "customer-7", "atelier/echo", "atelier/sketch"),
    ):
        browser.fill(browser.labelled(label), value)
        rows = "return document.querySelector('tbody').innerText"
        browser.until(filtered(browser, rows, shown, hidden), f"{label} does nothing")
        browser.fill(browser.labelled(label), "")
    browser.fill(browser.labelled("Status"), "cancelled")
    browser.press("Remove the filters")
    browser.until(lambda: "atelier/sketch" in browser.text("table"), "the filters are still there")
    assert browser.errors() == []


def test_the_page_of_a_request_shows_what_was_asked_and_came_back_until_it_is_purged(
    served: Serving, browser: Browser
) -> None:
    made = served.call("POST", "/compat/v1/images/generations", IMAGE).json
    sign_in(browser, served.url, served.key, f"requests/{made['id']}")
    browser.until(lambda: IMAGE["prompt"] in browser.text("#asked"), "the prompt is not shown")
    browser.until(
        lambda: browser.run("return document.querySelector('#came-back img')?.naturalWidth ?? 0") == 256, "no image"
    )
    page = browser.text("main")
    for words in ("256 × 256", "Attempts", "Atelier", "Cost", "$0.001", made["id"]):
        assert words in page, words
    browser.click("#again")
    browser.until(lambda: browser.has("#run"), "the playground is not opened")
    browser.until(lambda: browser.value(browser.labelled("size")) == "256x256", "the form does not have its values")
    browser.go(f"requests/{made['id']}")
    browser.until(lambda: browser.has("#purge"), "no button")
    browser.click("#purge")
    browser.press("Purge", "dialog")
    browser.until(lambda: not browser.has("#came-back img"), "the image is still shown")
    assert IMAGE["prompt"] not in browser.text("main")
    assert served.call("GET", f"/v1/requests/{made['id']}/payloads").json["request"] is None
    browser.go("requests/req_unknown")
    browser.until(lambda: browser.has("main .notice.bad"), "nothing is said about an unknown request")


def test_the_list_shows_outputs_and_why_requests_failed(
    served: Serving, browser: Browser, lab: ScriptedProvider
) -> None:
    served.call("POST", "/compat/v1/images/generations", IMAGE)
    lab.chats.next(faults.busy())
    served.call("POST", "/compat/v1/chat/completions", {**CHAT, "model": "lab/chat"})
    sign_in(browser, served.url, served.key, "requests")
    browser.until(
        lambda: browser.run("return document.querySelector('tbody .thumb img')?.naturalWidth ?? 0") == 160, "no image"
    )
    source = "return document.querySelector('tbody .thumb img').src"
    before = browser.run(source)
    assert "Rate limit reached." in browser.text("tbody")
    served.call("POST", "/compat/v1/chat/completions", CHAT)
    browser.until(lambda: "3 requests" in browser.text("#sum"), "the list is not refreshed")
    assert browser.run(source) == before, "the image is loaded again with every refresh"
    browser.go("overview")
    browser.until(lambda: "too busy" in browser.text("[aria-label='Current failures']"), "the reason is not shown")
    browser.click("[aria-label='Current failures'] td.number a")
    browser.until(lambda: "1 request," in browser.text("#sum"), "the link does not filter")
    assert "lab/chat" in browser.text("tbody")
    assert browser.errors() == []


def test_the_call_of_a_request_is_shown_as_code(served: Serving, browser: Browser) -> None:
    made = served.call("POST", "/compat/v1/images/generations", IMAGE).json
    sign_in(browser, served.url, served.key, f"requests/{made['id']}")
    browser.press("Code", "main")
    browser.until(lambda: IMAGE["prompt"] in browser.text("#code"), "no code")
    body = browser.text("#code").split("-d '")[1].rstrip("'")
    assert json.loads(body) == IMAGE


def test_what_is_filtered_is_exported_as_csv(served: Serving, browser: Browser) -> None:
    served.call("POST", "/compat/v1/images/generations", {**IMAGE, "size": "64x64"})
    served.call("POST", "/compat/v1/images/generations", {**IMAGE, "model": "atelier/unknown"})
    sign_in(browser, served.url, served.key, "requests?status=rejected")
    browser.until(lambda: "1 request," in browser.text("#sum"), "the filter in the URL does nothing")
    browser.click("#csv")
    browser.until(lambda: list(browser.downloads.glob("requests-*.csv")) != [], "no file is saved")
    [path] = browser.downloads.glob("requests-*.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(row["model"], row["status"]) for row in rows] == [("atelier/unknown", "rejected")]


def test_a_model_has_one_line_beside_a_long_user(served: Serving, browser: Browser) -> None:
    body = {"model": "atelier/sketch", "prompt": "a fox", "size": "64x64", "user": "customer-" + "0123456789-" * 8}
    served.call("POST", "/compat/v1/images/generations", body)
    browser.resize(1024, 768)
    sign_in(browser, served.url, served.key, "requests")
    browser.until(lambda: browser.has("td.lead .medium"), "the request is not listed")
    assert browser.run("return document.querySelector('td.lead .medium').getClientRects().length") == 1
    assert (
        browser.run(
            "const { scrollWidth, clientWidth } = document.querySelector('.scroller'); return scrollWidth - clientWidth"
        )
        == 0
    )
    browser.resize(1440, 900)
    assert "customer-" in browser.text("tbody tr")
    assert browser.run("return document.querySelector('tbody tr').offsetHeight < 80")


def test_a_request_for_speech_shows_its_text_and_can_be_made_again(served: Serving, browser: Browser) -> None:
    body = {"model": "atelier/voice", "input": "hello turbine"}
    assert served.call("POST", "/compat/v1/audio/speech", body).status == 200
    [record] = served.call("GET", "/v1/requests").json["data"]
    sign_in(browser, served.url, served.key, f"requests/{record['id']}")
    browser.until(lambda: browser.has("aside"), "the request is not shown")
    assert "Speech" in browser.text("aside")
    assert browser.text("#asked .quote") == "hello turbine"
    assert browser.has("#again")
    assert browser.errors() == []


def test_a_sound_can_be_heard_on_the_pages_of_its_request_and_its_model(served: Serving, browser: Browser) -> None:
    body = {"model": "atelier/sound", "prompt": "rain on a roof", "seconds": 1}
    job = served.call("POST", "/compat/v1/audio/generations", body).json["id"]
    browser.until(
        lambda: served.call("GET", f"/compat/v1/audio/generations/{job}").json["status"] == "completed",
        "the sound is not made",
    )
    [record] = served.call("GET", "/v1/requests").json["data"]

    def is_loaded() -> bool:
        return bool(browser.run("return document.querySelector('audio')?.duration > 0.2"))

    sign_in(browser, served.url, served.key)
    for page in (f"requests/{record['id']}", "models/atelier/sound"):
        browser.go(page)
        browser.until(is_loaded, f"{page} has no sound that plays")
    assert browser.errors() == []
