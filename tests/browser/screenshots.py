"""Take the screenshots of the documentation from the real pages: `python -m tests.browser.screenshots`."""

import io
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from tests.browser.chromium import Browser, chromium, sign_in
from tests.browser.history import write_history
from tests.fake_providers.scripted import scripted_provider_in_thread
from tests.stories.processes import ROOT, Installation, Serving

IMAGES = ROOT / "docs" / "images"
SIZE = (1280, 840)
PROMPTS = (
    "a fox in a snowy forest at night",
    "three red balloons over green hills, sunrise",
    "a sailing boat on a lake at sunset",
    "an owl on an oak, moonlight",
    "a castle above the fog at dawn",
)
SAMPLE = "a lighthouse at dusk, calm sea"


@dataclass(slots=True)
class Demo(Installation):
    """A gateway with nothing but the built-in models."""

    def _describe(self) -> None:
        self.data.mkdir(exist_ok=True, mode=0o700)


def make_outputs(served: Serving) -> None:
    """Some keys, images, chats, failures and a video."""
    shop = served.call("POST", "/v1/keys", {"name": "shop backend", "usd_per_day": 5}).json["key"]
    served.call("POST", "/v1/keys", {"name": "integration tests", "replay_mode": "replay-or-record"})
    for prompt in PROMPTS:
        body = {"model": "atelier/sketch", "prompt": prompt, "size": "768x768", "user": "customer-7"}
        served.call("POST", "/compat/v1/images/generations", body, key=shop)
    chat = {"model": "atelier/echo", "messages": [{"role": "user", "content": "What is a penstock?"}]}
    served.call("POST", "/compat/v1/chat/completions", chat)
    served.call(
        "POST", "/compat/v1/videos", {"model": "atelier/clip", "prompt": "waves [fail]", "seconds": 1}, key=shop
    )
    served.call("POST", "/compat/v1/images/generations", {"model": "atelier/sketch", "prompt": SAMPLE, "size": "9x9"})
    served.call("POST", "/compat/v1/videos", {"model": "atelier/clip", "prompt": SAMPLE, "seconds": 2}, key=shop)


def save(browser: Browser, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.png"
        browser.save_screenshot(path)
        image = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
    image.save(IMAGES / f"{name}.webp", quality=82, method=6)


def show(browser: Browser, served: Serving, page: str, theme: str) -> None:
    browser.run("localStorage.setItem('theme', arguments[0])", theme)
    browser.open("about:blank")
    browser.open(f"{served.url}/#/{page}")
    browser.until(lambda: browser.has("main h1") and not browser.has("main .spinner"), f"{page} does not settle")


def is_drawn(browser: Browser, selector: str) -> bool:
    """Whether the images that are on the screen have been loaded; others are loaded when they are scrolled to."""
    script = (
        "const images = [...document.querySelectorAll(arguments[0])]"
        ".filter((image) => image.getBoundingClientRect().top < innerHeight);"
        "return images.length > 0 && images.every((image) => image.complete && image.naturalWidth > 0)"
    )
    return bool(browser.run(script, selector))


def take(browser: Browser, served: Serving) -> None:
    browser.resize(*SIZE)
    sign_in(browser, served.url, served.key)
    show(browser, served, "playground/image", "light")
    browser.until(lambda: browser.has("#run:enabled"), "the form is not ready")
    browser.click("#run")
    browser.until(lambda: browser.has(".measures"), "nothing was made")
    browser.until(lambda: browser.text("#price").startswith("$") and is_drawn(browser, ".outputs img"), "no image")
    save(browser, "playground")
    show(browser, served, "overview?range=month&by=model", "light")
    browser.until(lambda: browser.run("return document.querySelectorAll('.plot canvas').length") == 4, "no charts")
    save(browser, "overview")
    [video] = served.call("GET", "/v1/requests?limit=1&kind=video&status=completed").json["data"]
    show(browser, served, f"requests/{video['id']}", "dark")
    browser.until(lambda: browser.run("return document.querySelector('video')?.readyState") in (2, 3, 4), "no video")
    browser.run("document.querySelector('video').currentTime = 0.5")
    shown = "const video = document.querySelector('video'); return !video.seeking && video.readyState === 4"
    browser.until(lambda: browser.run(shown), "no frame is shown")
    browser.run("document.querySelector('video').controls = false")  # they hide a part of the frame while they fade out
    save(browser, "request")
    show(browser, served, "requests", "dark")
    browser.until(lambda: browser.has(".row-link") and is_drawn(browser, ".thumb img"), "no request is listed")
    save(browser, "requests")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, scripted_provider_in_thread() as lab:
        gateway = Demo(Path(folder) / "data", "", lab)
        with gateway.serving():
            pass  # creates the database and the first key
        write_history(gateway.data / "penstock.db", days=59, per_day=140)
        with gateway.serving() as served, chromium(Path(folder)) as browser:
            make_outputs(served)
            browser.until(
                lambda: len(served.call("GET", "/v1/requests?kind=video&status=completed").json["data"]) > 0, ""
            )
            take(browser, served)


if __name__ == "__main__":
    main()
