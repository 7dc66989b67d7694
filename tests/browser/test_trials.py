"""From a file of prompts to calls that get another model: the pages of trials, and the page on which people vote."""

from pathlib import Path

import pytest

from tests.browser.axe import AXE, choose_theme, violations
from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

READY = "const vote = document.querySelector('#left-wins'); return Boolean(vote) && !vote.disabled"
PRESS = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))"
SOURCES = "return [...document.querySelectorAll('figure img')].map((image) => image.src)"
LOADED = "return [...document.querySelectorAll('.made img')].filter(({ naturalWidth }) => naturalWidth).length"
IMAGE = {"model": "image-1", "prompt": "a pear", "size": "64x64"}


def make_from_file(browser: Browser, file: Path) -> None:
    """Fill the form of a new trial, look at the price, and run it."""
    file.write_text("prompt,size\na fox in the snow,64x64\nan owl on an oak,64x64\n")
    browser.go("trials/new")
    browser.until(lambda: browser.has("select[name=source]"), "there is no form")
    browser.run(
        "const from = document.querySelector('select[name=source]'); from.value = 'file';"
        "from.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    browser.until(lambda: browser.has("input[type=file]"), "no file can be chosen")
    browser.type("input[type=file]", str(file))
    browser.click("#send-trial")
    browser.until(lambda: browser.has("#estimate"), "there is no price")
    assert "$0.082 for 4 calls" in browser.text("#estimate")
    browser.click("#send-trial")
    browser.until(lambda: browser.has("main .back") and "Completed" in browser.text("main"), "it does not run")


def vote(browser: Browser, link: str) -> None:
    """Let the image of the built-in provider win each pair; it is the one with more colours than one."""
    browser.open(link)
    for pair in (1, 2):
        browser.until(lambda: bool(browser.run(READY)), "there is no pair")
        assert browser.text("#progress") == f"{pair} of 2"
        shown = browser.run("return document.body.innerText") + str(browser.run(SOURCES))
        assert not any(word in shown for word in ("atelier", "sketch", "image-1", "lab", "$", "med_", "req_"))
        before = browser.run(SOURCES)
        browser.run(PRESS, "a" if browser.run(IS_DRAWN, "left") else "b")
        browser.until(lambda: browser.run(SOURCES) != before, "the vote is not taken")  # noqa: B023
    browser.until(lambda: "Thank you" in browser.text("main"), "it does not end")


# Whether an image has several colours, read from its pixels.
IS_DRAWN = (
    "const image = document.querySelector(`#${arguments[0]} img`), canvas = document.createElement('canvas');"
    "canvas.width = canvas.height = 16; const context = canvas.getContext('2d');"
    "context.drawImage(image, 0, 0, 16, 16); const { data } = context.getImageData(0, 0, 16, 16);"
    "return new Set([...Array(256).keys()].map((at) => data.slice(4 * at, 4 * at + 3).join(' '))).size > 20"
)


def test_a_file_of_prompts_becomes_a_rule_that_sends_calls_to_the_model_that_won(
    served: Serving, browser: Browser, tmp_path: Path
) -> None:
    served.call("POST", "/compat/v1/images/generations", IMAGE)
    sign_in(browser, served.url, served.key, "trials")
    browser.until(lambda: "No trials" in browser.text("main"), "the list is not empty")
    make_from_file(browser, tmp_path / "prompts.csv")
    here = browser.run("return location.href")
    browser.click("#make-link")
    browser.until(lambda: browser.has("#vote-link"), "there is no link")
    vote(browser, browser.text("#vote-link"))
    assert browser.errors() == []

    browser.open(here)
    browser.until(lambda: "100 %" in browser.text("table"), "the votes are not counted")
    browser.click("#show-outputs")
    browser.until(lambda: browser.run(LOADED) == 4, "the outputs are not shown")
    browser.click('button[aria-label="Use atelier/sketch"]')
    browser.until(lambda: browser.has("#saving"), "it does not say what is saved")
    assert "saves $0.039 a month: 1 call cost $0.04" in browser.text("#saving").replace("\n", " ")
    browser.click("#decide")
    browser.until(lambda: browser.has("#verdict"), "nothing is decided")
    made = served.call("POST", "/compat/v1/images/generations", IMAGE).json
    assert made["metadata"]["provider"] == "atelier"
    assert browser.errors() == []


def test_a_trial_whose_budget_is_used_up_gets_another_one(served: Serving, browser: Browser) -> None:
    trial = {"models": ["atelier/sketch", "image-1"], "prompts": ["a pear"], "parameters": {"size": "64x64"}}
    made = served.call("POST", "/v1/trials", {**trial, "max_cost": 0.001}).json
    sign_in(browser, served.url, served.key, f"trials/{made['id']}")
    browser.until(lambda: browser.has("input[name=budget]"), "it asks for no budget")
    assert "Paused: what comes next might cost more than is left of its budget." in browser.text("main")
    browser.fill("input[name=budget]", "0.5")
    browser.click("#resume")
    browser.until(lambda: "2 of 2 outputs" in browser.text("main"), "it does not go on")
    assert served.call("GET", f"/v1/trials/{made['id']}").json["max_cost"] == 0.5
    assert browser.errors() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_votes_is_accessible(served: Serving, browser: Browser, theme: str) -> None:
    trial = {"models": ["atelier/sketch", "image-1"], "prompts": ["a pear"], "parameters": {"size": "64x64"}}
    made = served.call("POST", "/v1/trials", trial).json
    link = served.call("POST", f"/v1/trials/{made['id']}/link", {}).json
    browser.open(link["url"])
    choose_theme(browser, theme)
    browser.run("location.reload()")
    browser.until(lambda: bool(browser.run(READY)), "there is no pair")
    browser.run(AXE)
    assert violations(browser) == []
    browser.resize(390, 844)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
