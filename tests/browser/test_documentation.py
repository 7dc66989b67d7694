"""The documentation in a browser: search, the reference of the API, no findings of axe-core, phone width."""

from pathlib import Path

import pytest

from tests.browser.axe import AXE, choose_theme, violations
from tests.browser.chromium import Browser
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

PAGES = ("", "/images", "/endpoints", "/webhooks", "/production", "/api#make_images")


def open_page(browser: Browser, served: Serving, page: str) -> None:
    browser.open("about:blank")
    browser.open(f"{served.url}/docs{page}")
    ready = "#api .operation[open] .snippet" if page.startswith("/api") else "#theme button"
    browser.until(lambda: browser.has(ready), f"{page} does not settle")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_finding_or_is_wider_than_a_phone(served: Serving, browser: Browser, theme: str) -> None:
    browser.open(f"{served.url}/docs")
    choose_theme(browser, theme)
    found = []
    for page in PAGES:
        open_page(browser, served, page)
        browser.run(AXE)
        found += [f"{page}: {problem}" for problem in violations(browser)]
        browser.resize(390, 844)
        wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        found += [f"{page} is {wide} pixels wider than the phone"] if wide > 0 else []
        browser.resize(1280, 900)
    assert found == []
    assert browser.errors() == []


def test_no_page_of_the_navigation_is_wider_than_a_phone(served: Serving, browser: Browser) -> None:
    browser.open(f"{served.url}/docs")
    urls = browser.run("return [...document.querySelectorAll('nav.pages a')].map((link) => link.pathname)")
    assert len(urls) > 30
    browser.resize(390, 844)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    found = {}
    for url in urls:
        browser.open(f"{served.url}{url}")
        found[url] = browser.run(wide)
    assert [url for url, pixels in found.items() if pixels > 0] == []


def test_the_search_finds_a_section_by_keyboard(served: Serving, browser: Browser) -> None:
    open_page(browser, served, "/images")
    browser.type("body", "/")
    browser.until(lambda: browser.has("dialog[open]"), "the slash does not open the search")
    browser.type("dialog input", "after a crash")
    browser.until(lambda: "After a crash" in browser.text("dialog li"), "it finds nothing")
    browser.type("dialog input", "\ue007")  # the enter key
    browser.until(
        lambda: browser.run("return location.href").endswith("/docs/videos#after-a-crash"), "no page is opened"
    )
    assert browser.errors() == []


QUESTIONS = {
    "why did my video fail": ("videos", "errors"),
    "webhooks locally": ("webhooks#try-it-on-your-own-machine",),
    "test without spending": ("replay",),
    "limit teammate": ("faq#how-do-i-change-the-limits-of-a-key", "operations#limits"),
    "limit a person": ("faq#how-do-i-change-the-limits-of-a-key", "operations#limits"),
    "upgrade": ("upgrading",),
    "add fal": ("providers/fal",),
    "spend per model": ("faq#what-did-each-model-cost",),
    "lost key": ("faq#i-lost-the-key",),
    "nginx": ("deploy#proxies", "evening#nginx-and-prometheus"),
    "LiteLLM": ("migrating#from-litellms-proxy",),
    "ComfyUI": ("providers/comfyui",),
    "stored prompts": ("operations#what-is-stored-of-requests",),
}


def test_questions_in_the_words_of_readers_find_their_page_among_the_first_four(
    served: Serving, browser: Browser
) -> None:
    open_page(browser, served, "/images")
    browser.click("#find")
    missed = {}
    links = "return [...document.querySelectorAll('dialog li a')].slice(0, 4).map((each) => each.getAttribute('href'))"
    browser.fill("dialog input", "images")
    browser.until(lambda: browser.has("dialog li a"), "the index is not loaded")
    for question, pages in QUESTIONS.items():
        browser.fill("dialog input", question)
        shown = [url.removeprefix("/docs/") for url in browser.run(links)]
        if not any(url.startswith(page) for url in shown for page in pages):
            missed[question] = shown
    assert missed == {}
    browser.fill("dialog input", "xyzzy")
    browser.until(lambda: browser.has("#wishes a[href='/docs/replay']"), "nothing is offered where nothing is found")
    table = (Path(__file__).parents[2] / "docs" / "README.md").read_text()
    for url in browser.run("return [...document.querySelectorAll('#wishes a')].map((each) => each.pathname)"):
        assert f"({url.removeprefix('/docs/')}.md" in table, url


def test_the_reference_filters_and_shows_what_an_operation_takes(served: Serving, browser: Browser) -> None:
    open_page(browser, served, "/api#make_images")
    for words in (
        "$PENSTOCK_URL/compat/v1/images/generations",
        "dryRun",
        "output_format",
        "402",
        "INSUFFICIENT_BALANCE",
    ):
        assert words in browser.text("#make_images"), words
    browser.fill("#filter", "rotate secret")
    browser.until(
        lambda: browser.run("return document.querySelectorAll('.operation').length") == 1, "it does not filter"
    )
    assert "/v1/webhooks/secret/rotate" in browser.text(".operation")


def test_a_search_that_cannot_be_loaded_says_so_and_is_tried_again(served: Serving, browser: Browser) -> None:
    browser.open(f"{served.url}/docs")
    browser.until(lambda: browser.has("#find"), "there is no search")
    browser.run("window.found = window.fetch; window.fetch = () => Promise.reject(new TypeError('offline'))")
    browser.click("#find")
    browser.type("dialog.search input", "webhook")
    browser.until(lambda: "could not be loaded" in browser.text("dialog.search"), "the failure is not shown")
    browser.run("window.fetch = window.found; document.querySelector('dialog.search').close()")
    browser.click("#find")
    browser.until(lambda: browser.has("dialog.search li a"), "nothing is found afterwards")
