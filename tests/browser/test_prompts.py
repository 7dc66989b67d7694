"""Words in the playground: Markdown of chat models without any HTML, earlier prompts, and which provider said what."""

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

TEXT = """# Turbines
**Bold**, *soft* and `code`, [safe](https://docs.test/a), [bad](javascript:document.title='gone').

- one
  - nested
- two

| a | b |
|---|---|
| 1 | 2 |

```html
<script>document.title='gone'</script>
```
<img src=x onerror="document.title='gone'">"""
FOUND = """const said = document.querySelector('.said');
return { strong: said.querySelector('strong')?.innerText, nested: said.querySelector('li li')?.innerText,
  cells: [...said.querySelectorAll('td')].map((each) => each.innerText), code: said.querySelector('pre')?.innerText,
  heading: said.querySelector('[role=heading]')?.innerText,
  links: [...said.querySelectorAll('a')].map((each) => each.href),
  foreign: said.querySelectorAll('img, script').length, title: document.title }"""


def test_chats_are_shown_as_markdown_and_never_as_html(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "playground/chat?model=atelier/echo")
    browser.until(lambda: browser.has("#message"), "no chat")
    browser.fill("#message", TEXT)
    browser.press("Send")
    browser.until(lambda: browser.has(".said pre") and browser.has(".measures"), "no answer")
    assert browser.run(FOUND) == {
        "strong": "Bold",
        "nested": "nested",
        "cells": ["1", "2"],
        "code": "<script>document.title='gone'</script>",
        "heading": "Turbines",
        "links": ["https://docs.test/a"],
        "foreign": 0,
        "title": "Playground · Penstock",
    }
    assert "<img src=x" in browser.text(".said")
    browser.until(lambda: "Atelier" in browser.text(".answer"), "the provider is not named")
    assert browser.errors() == []


def test_an_earlier_prompt_is_found_and_used_again(served: Serving, browser: Browser) -> None:
    long = "a fox in a snowy forest, " + "very detailed, " * 40
    for prompt in (long, "a sailing boat", "a sailing boat"):
        body = {"model": "atelier/sketch", "prompt": prompt, "size": "64x64"}
        served.call("POST", "/compat/v1/images/generations", body)
    sign_in(browser, served.url, served.key, "playground/image")
    browser.press("Earlier prompts")
    listed = "return document.querySelectorAll('.prompts li').length"
    browser.until(lambda: browser.run(listed) == 2, "not every prompt is listed once")
    browser.fill(browser.labelled("Search"), "FOX forest")
    browser.until(lambda: browser.run(listed) == 1, "the words do not filter")
    browser.click(".prompts button")
    browser.until(lambda: browser.value("textarea") == long, "the whole prompt is not in the form")


def test_a_failed_lane_says_which_provider_said_what(served: Serving, lab: ScriptedProvider, browser: Browser) -> None:
    lab.images.always(faults.error(400, "I will not draw this."))
    sign_in(browser, served.url, served.key, "playground/image?model=image-1")
    browser.until(lambda: browser.run("return document.querySelector('#run')?.disabled") is False, "cannot be pressed")
    browser.click("#run")
    browser.until(lambda: browser.has(".lane .notice.bad li"), "the provider is not named")
    assert browser.text(".lane .notice.bad li") == "lab (HTTP 400): I will not draw this."
