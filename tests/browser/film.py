"""Record the animated picture of the README from the real pages: `python -m tests.browser.film`.

A video is started, its gateway is killed and started again, and the video arrives. Pauses of the gateway are cut; every
frame is a screenshot.
"""

import io
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from tests.browser.chromium import Browser, chromium, sign_in
from tests.browser.screenshots import IMAGES, Demo
from tests.stories.processes import Serving

SIZE = (1120, 700)
SHOWN = (840, 525)  # of the page in the picture
CAPTION = 44  # pixels below it
QUALITY = 70
FONT = ImageFont.load_default(19)
LANE = "return JSON.parse(sessionStorage.getItem('runs'))?.[0]?.lanes[0] ?? {}"
LOST = "Connection lost"
VIDEO = "const video = document.querySelector('.outputs video');"


@dataclass(slots=True)
class Film:
    """Screenshots with captions, each with how long it is shown."""

    browser: Browser
    folder: Path
    frames: list[Image.Image] = field(default_factory=list)
    durations: list[int] = field(default_factory=list)
    caption: str = ""

    def take(self, milliseconds: int, caption: str = "") -> None:
        self.caption = caption or self.caption
        path = self.folder / "frame.png"
        self.browser.save_screenshot(path)
        page = Image.open(io.BytesIO(path.read_bytes())).convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS)
        frame = Image.new("RGB", (SHOWN[0], SHOWN[1] + CAPTION), "#10201f")
        frame.paste(page)
        ImageDraw.Draw(frame).text((18, SHOWN[1] + CAPTION // 2), self.caption, "#e8f3f1", FONT, anchor="lm")
        if self.frames and frame == self.frames[-1]:
            self.durations[-1] += milliseconds
        else:
            self.frames.append(frame)
            self.durations.append(milliseconds)

    def save(self, path: Path) -> None:
        first, *others = self.frames
        first.save(
            path, save_all=True, append_images=others, duration=self.durations, loop=0, quality=QUALITY, method=6
        )


def progress(browser: Browser) -> int:
    return int(browser.run(LANE).get("progress") or 0)


def start_video(film: Film, served: Serving) -> None:
    browser = film.browser
    sign_in(browser, served.url, served.key, "playground/video")
    browser.until(lambda: browser.has("#run:enabled"), "the form is not ready")
    browser.fill("textarea", "a sailing boat on a lake at sunset")
    for seconds, price in (("4", "$0.004"), ("10", "$0.01")):
        browser.fill(browser.labelled("seconds"), seconds)
        browser.until(lambda price=price: browser.text("#price") == price, "no price")  # type: ignore[misc]
        browser.until(lambda: browser.has("#run:enabled"), "it cannot be pressed")
        film.take(1300, "The price, before anything is made")
    browser.click("#run")
    for percent in (5, 20, 35):
        browser.until(lambda percent=percent: progress(browser) >= percent, "it does not progress")  # type: ignore[misc]
        film.take(700, "A video of ten seconds is a job of the gateway")


def kill(film: Film, served: Serving) -> None:
    served.kill()
    film.take(900, "kill -9")
    film.browser.until(lambda: LOST in film.browser.text(".lane"), "it does not say that the connection is lost")
    film.take(1600, "kill -9: the gateway is gone, and the page waits")


def finish(film: Film, served: Serving) -> None:
    """Follow the video to its end, play it, and show its record."""
    browser = film.browser
    browser.until(lambda: LOST not in browser.text(".lane"), "the connection is not back")
    film.take(1500, "It is started again, and goes on with the video")
    shown = progress(browser)
    while browser.run(LANE)["state"] != "done":
        if shown != (shown := progress(browser)):
            film.take(300)
    browser.until(lambda: browser.has(".outputs video"), "no video is shown")
    # Controls are hidden, because they fade out over the first frames.
    browser.run(f"{VIDEO} video.preload = 'auto'; video.controls = false")
    for second in (0.5, 2.5, 4.5, 6.5, 8.5):
        browser.run(f"{VIDEO} video.currentTime = arguments[0]", second)
        browser.until(lambda: browser.run(f"{VIDEO} return !video.seeking && video.readyState > 1"), "it does not move")
        film.take(700, "It arrives, and is charged once")
    [row] = served.call("GET", "/v1/requests").json["data"]
    assert row["status"] == "completed", row
    browser.go(f"requests/{row['id']}")
    browser.until(lambda: browser.run("return document.querySelector('video')?.readyState > 1"), "no video")
    film.take(3000, "Its record: who made it, how long that took, and what it cost")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        gateway = Demo(Path(folder) / "data", "", None)
        with chromium(Path(folder)) as browser:
            browser.resize(*SIZE)
            film = Film(browser, Path(folder))
            with gateway.serving() as served:
                gateway.port = int(served.url.rpartition(":")[2])
                start_video(film, served)
                kill(film, served)
            with gateway.serving() as served:
                finish(film, served)
    film.save(IMAGES / "film.webp")
    seconds = sum(film.durations) / 1000
    sys.stdout.write(f"{len(film.frames)} frames, {seconds:.1f} s, {(IMAGES / 'film.webp').stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
