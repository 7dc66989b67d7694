"""The playground while the gateway cannot be reached: nothing is called failed that the gateway did not call failed."""

import threading
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

IMAGE_WIDTH = "return document.querySelector('.outputs img')?.naturalWidth ?? 0"
LANE = "return JSON.parse(sessionStorage.getItem('runs'))?.[0]?.lanes[0] ?? {}"
LOST = "Connection lost, trying again…"


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Set when the provider may deliver; at the end in any case, so that its thread ends."""
    event = threading.Event()
    yield event
    event.set()


def make(browser: Browser) -> None:
    browser.until(lambda: not browser.run("return document.querySelector('#run').disabled"), "it cannot be pressed")
    browser.click("#run")


def start_image(browser: Browser, served: Serving) -> None:
    sign_in(browser, served.url, served.key, "playground/image?model=image-1")
    browser.until(lambda: browser.has("#run"), "the form is not shown")
    make(browser)
    browser.until(lambda: bool(browser.run(LANE).get("requestId")), "the call is not accepted")


def test_a_blip_is_not_a_failure(
    served: Serving, lab: ScriptedProvider, browser: Browser, released: threading.Event
) -> None:
    lab.images.next(faults.waiting(released))
    start_image(browser, served)
    browser.connect(False)
    browser.until(lambda: LOST in browser.text(".lane"), "it does not say that the connection is lost")
    browser.fill(browser.labelled("n"), "2")
    browser.until(lambda: browser.text("#price") == LOST, "the price does not say so")
    assert "Failed" not in browser.text(".results")
    released.set()
    browser.connect(True)
    browser.until(lambda: browser.run(IMAGE_WIDTH) > 0, "the image does not arrive after the blip")
    browser.until(lambda: browser.text("#price").startswith("$"), "the price does not come back")
    assert len(served.call("GET", "/v1/requests").json["data"]) == 1


def test_a_restart_is_not_a_failure(story: Installation, browser: Browser) -> None:
    with story.serving() as served:
        story.port = int(served.url.rpartition(":")[2])
        sign_in(browser, served.url, served.key, "playground/video")
        browser.until(lambda: browser.has("#run"), "the form is not shown")
        browser.fill(browser.labelled("seconds"), "4")
        make(browser)
        browser.until(lambda: bool(browser.run(LANE).get("requestId")), "the call is not accepted")
        served.kill()
        browser.until(lambda: LOST in browser.text(".lane"), "it does not say that the connection is lost")
        assert "Failed" not in browser.text(".results")
    with story.serving() as served:
        browser.until(lambda: browser.run(LANE)["state"] == "done", "the video does not arrive after the restart")
        assert browser.has(".outputs video")
        [request] = served.call("GET", "/v1/requests").json["data"]
        assert request["status"] == "completed"


def test_a_call_that_may_not_have_arrived_is_repeated_and_made_once(
    served: Serving, lab: ScriptedProvider, browser: Browser
) -> None:
    sign_in(browser, served.url, served.key, "playground/image?model=image-1")
    browser.until(lambda: browser.text("#price").startswith("$"), "no price is shown")
    browser.connect(False)
    make(browser)
    browser.until(lambda: LOST in browser.text(".lane"), "it does not say that the connection is lost")
    browser.connect(True)
    browser.until(lambda: browser.run(IMAGE_WIDTH) > 0, "the image does not arrive")
    assert len(lab.images) == 1


def test_failed_is_what_the_gateway_says(served: Serving, lab: ScriptedProvider, browser: Browser) -> None:
    lab.images.always(faults.rejected)
    start_image(browser, served)
    browser.until(lambda: "Failed" in browser.text(".lane"), "a failure is not called one")
    assert "Invalid value" in browser.text(".lane .notice.bad")
