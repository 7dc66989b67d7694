"""How much pages load: small copies of what was made, never the files themselves."""

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PAGES = ("overview", "requests", "requests/{id}", "playground/image", "models", "library")
PROMPTS = ("a fox in a snowy forest", "a sailing boat at sunset", "an owl on an oak", "a castle above the fog")
MOST_BYTES = 150_000
_LOADED = (
    "return performance.getEntriesByType('resource').filter(({ name }) => name.includes('/m/med_'))"
    ".map(({ name, encodedBodySize }) => [name, encodedBodySize])"
)
_DRAWN = (
    "return [...document.querySelectorAll('main img')]"
    ".filter((image) => image.getBoundingClientRect().top < innerHeight).every((image) => image.complete)"
)


def loaded_bytes(browser: Browser, url: str, page: str) -> tuple[int, list[str]]:
    """The bytes of the files that a page loads at a first visit, and their URLs."""
    browser.forget_files()
    browser.open("about:blank")
    browser.open(f"{url}/#/{page}")

    def settled() -> bool:
        is_loaded = browser.has("main h1") and not browser.has("main .spinner")
        return is_loaded and (page == "overview" or browser.has("main img")) and bool(browser.run(_DRAWN))

    browser.until(settled, f"{page} does not settle")
    found = browser.run(_LOADED)
    return sum(size for _, size in found), [name for name, _ in found]


def test_pages_load_small_copies_of_images_and_videos(served: Serving, browser: Browser) -> None:
    body = {"model": "atelier/sketch", "size": "1024x1024"}
    for prompt in PROMPTS * 2:
        served.call("POST", "/compat/v1/images/generations", {**body, "prompt": prompt})
    made = served.call("POST", "/compat/v1/images/generations", {**body, "prompt": "a lighthouse"})
    served.call("POST", "/compat/v1/videos", {"model": "atelier/clip", "prompt": "waves", "seconds": 2})
    request_id = made.headers["x-request-id"]
    sign_in(browser, served.url, served.key, "requests")
    browser.until(lambda: browser.text("table").count("Completed") == 10, "the video is not made")
    weights = {}
    for page in PAGES:
        size, urls = loaded_bytes(browser, served.url, page.format(id=request_id))
        weights[page] = size
        assert all("&w=" in url for url in urls), page
    assert max(weights.values()) < MOST_BYTES, weights
    assert min(weights["requests"], weights["requests/{id}"], weights["playground/image"], weights["models"]) > 0
