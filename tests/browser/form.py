"""The form of the playground: open it for a task, and press its button."""

from tests.browser.chromium import Browser, sign_in
from tests.stories.processes import Serving


def open_task(browser: Browser, served: Serving, task: str) -> None:
    sign_in(browser, served.url, served.key, f"playground/{task}")
    browser.until(lambda: browser.has("#run"), f"the form of {task} is not shown")


def make(browser: Browser) -> None:
    browser.until(lambda: not browser.run("return document.querySelector('#run').disabled"), "it cannot be pressed")
    browser.click("#run")
