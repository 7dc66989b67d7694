"""The dashboard as a person uses it: in a real browser, against the real server."""

from pathlib import Path

import pytest

from tests.browser.chromium import Browser, come_in
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def test_sign_in_generate_an_image_and_sign_out(served: Serving, browser: Browser, tmp_path: Path) -> None:
    come_in(browser, served.url, served.key)
    browser.run("document.getElementById('model').value = 'atelier/sketch'")
    browser.click("#try button")
    browser.until(
        lambda: browser.run("return document.querySelector('#pictures img')?.naturalWidth") == 512, "no image"
    )
    browser.until(lambda: "atelier/sketch" in browser.text("#requests"), "the request is not listed")
    assert "completed" in browser.text("#requests")
    assert "1 in total" in browser.text("#sum")
    browser.until(lambda: "healthy" in browser.text("#providers"), "the provider's health is not shown")
    browser.click("#requests button")
    assert '"model": "atelier/sketch"' in browser.text("#record")
    browser.save_screenshot(tmp_path / "dashboard.png")
    browser.click("#detail button")
    browser.click("#leave")
    assert browser.run("return [sessionStorage.length, document.getElementById('door').hidden]") == [0, False]
    assert [line for line in browser.log() if line["level"] == "SEVERE"] == []


def test_a_wrong_key_is_refused(served: Serving, browser: Browser) -> None:
    browser.open(served.url + "/")
    browser.type("#key", "pk_wrong")
    browser.click("#enter button")
    browser.until(lambda: browser.text("#refusal") != "", "nothing is said")
    assert browser.run("return [sessionStorage.length, document.getElementById('house').hidden]") == [0, True]


def test_text_of_others_is_never_markup(served: Serving, lab: ScriptedProvider, browser: Browser) -> None:
    """A prompt, a model name and an error message that contain markup."""
    lab.images.always(faults.error(500, "<img src=x onerror=document.title='gone'>"))
    evil = "<script>document.title='gone'</script>"
    served.call("POST", "/compat/v1/images/generations", {"model": evil, "prompt": evil})
    served.call("POST", "/compat/v1/images/generations", {"model": "image-1", "prompt": evil})
    come_in(browser, served.url, served.key)
    browser.until(lambda: evil in browser.text("#requests"), "the refused request is not listed")
    browser.until(lambda: "Lab" in browser.text("#providers") or "lab" in browser.text("#providers"), "no provider")
    assert browser.run("return [document.title, document.querySelectorAll('#house script, #house img').length]") == [
        "Penstock",
        0,
    ]
