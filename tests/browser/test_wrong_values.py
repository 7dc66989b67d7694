"""Wrong values are marked where they are, all of them, before anything is sent, and so are files of a wrong kind."""

from pathlib import Path

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

MARKED = "return [...document.querySelectorAll('.field .wrong')].map((each) => each.innerText)"
DROP = """
const data = new DataTransfer();
data.items.add(new File(['words'], 'notes.txt', { type: 'text/plain' }));
const event = new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
document.querySelector('.drop').dispatchEvent(event);
"""


def test_every_wrong_parameter_is_marked_and_nothing_can_be_run(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "playground/image?model=atelier/sketch")
    browser.until(lambda: browser.text("#price").startswith("$"), "no price is shown")
    browser.fill(browser.labelled("n"), "50")
    browser.fill(browser.labelled("size"), "huge")
    browser.fill(browser.labelled("seed"), "-1")
    wanted = [
        "size must be WIDTHxHEIGHT, or a proportion such as 16:9.",
        "n must be from 1 to 10.",
        "seed must be from 0 to 4294967295.",
    ]
    browser.until(lambda: browser.run(MARKED) == wanted, "not every wrong field is marked")
    assert browser.run("return document.querySelector('#run').disabled")
    for name, value in (("n", "1"), ("seed", ""), ("size", "9x9")):
        browser.fill(browser.labelled(name), value)
    browser.until(lambda: "16 to 8192" in "".join(browser.run(MARKED)), "what the gateway refuses is not marked")
    assert browser.run("return document.querySelector('#run').disabled")
    browser.fill(browser.labelled("size"), "")
    browser.until(lambda: browser.run("return document.querySelector('#run').disabled") is False, "it cannot be run")
    assert browser.run(MARKED) == []


def test_a_form_marks_every_wrong_field_and_goes_to_the_first(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "keys")
    browser.press("New key")
    browser.fill(browser.labelled("Requests per minute"), "0")
    browser.fill(browser.labelled("US dollars per day"), "-3")
    before = len(served.call("GET", "/v1/keys").json["data"])
    browser.click("#save-key")
    browser.until(lambda: len(browser.run(MARKED)) == 2, "not both fields are marked")
    assert browser.run("return document.activeElement.id") in browser.labelled("Requests per minute")
    browser.fill(browser.labelled("Requests per minute"), "10")
    browser.until(lambda: len(browser.run(MARKED)) == 1, "the mark stays at a field that was changed")
    assert len(served.call("GET", "/v1/keys").json["data"]) == before, "it was sent"


def test_a_dropped_file_of_the_wrong_kind_is_named(served: Serving, browser: Browser, tmp_path: Path) -> None:
    sign_in(browser, served.url, served.key, "playground/edit")
    browser.until(lambda: browser.has(".drop"), "no place to drop a file")
    browser.run(DROP)
    browser.until(lambda: "notes.txt is not an image." in "".join(browser.run(MARKED)), "the file is not named")
