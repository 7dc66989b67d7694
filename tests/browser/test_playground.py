"""The playground as a person uses it: every task, the price before pressing, comparing, and the same call as code."""

import json
import shutil
import subprocess
import sys
from base64 import b64decode
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.browser.chromium import Browser, sign_in
from tests.browser.form import make, open_task
from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

IMAGE_WIDTH = "return document.querySelector('.outputs img')?.naturalWidth ?? 0"
DRAW = """
const canvas = document.querySelector('#mask');
const box = canvas.getBoundingClientRect();
canvas.setPointerCapture = () => {};
const at = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {
  clientX: box.left + box.width * x, clientY: box.top + box.height * y, pointerId: 1, bubbles: true}));
at('pointerdown', .25, .25);
at('pointermove', .75, .25);
at('pointerup', .75, .25);
"""


def write_image(path: Path) -> None:
    Image.new("RGB", (64, 64), (40, 120, 160)).save(path)


def test_an_image_has_its_price_before_and_its_size_time_and_cost_after(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "image")
    assert browser.value("textarea") == "a lighthouse at dusk, calm sea"
    browser.until(lambda: browser.text("#price") == "$0.001", "no price is shown")
    browser.fill(browser.labelled("n"), "3")
    browser.until(lambda: browser.text("#price") == "$0.003", "the price does not follow the form")
    browser.fill(browser.labelled("n"), "40")
    browser.until(lambda: "n must be from 1 to 10." in browser.text("form .wrong"), "the fault is not at its field")
    browser.fill(browser.labelled("n"), "")
    browser.fill(browser.labelled("size"), "320x256")
    make(browser)
    browser.until(lambda: browser.run(IMAGE_WIDTH) == 320, "no image")
    browser.until(lambda: "320 × 256" in browser.text(".measures"), "the real size is not shown")
    assert "$0.001" in browser.text(".measures")
    assert "Atelier" in browser.text(".measures")

    browser.open(served.url + "/#/playground/image")  # loaded again: the form and the result are still there
    browser.until(lambda: browser.run(IMAGE_WIDTH) == 320, "the result is lost after a reload")
    assert browser.value(browser.labelled("size")) == "320x256"
    browser.press("Run again")
    browser.until(lambda: browser.run("return document.querySelectorAll('.run').length") == 2, "it does not run again")
    assert browser.errors() == []


def test_every_parameter_of_the_schema_is_in_the_form(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "video")
    schema = served.call("GET", "/compat/v1/models/atelier/clip?schema=true").json["schema"]["properties"]
    elsewhere = {"model", "prompt", "input_reference", "duration"}
    shown = set(
        browser.run(
            "return [...document.querySelectorAll('form label code, form dt code')].map((each) => each.innerText)"
        )
    )
    shown |= set(
        browser.run(
            "return [...document.querySelectorAll('form label code, form dt code')].map((each) => each.textContent)"
        )
    )
    assert set(schema) - elsewhere <= shown, set(schema) - elsewhere - shown
    text = browser.run("return document.querySelector('form').textContent")
    for words in ("Length of the video in seconds. 1 to 20.", "Converted", "Ignored by this model"):
        assert words in text, words
    assert browser.run("return document.querySelector(arguments[0]).placeholder", browser.labelled("seconds")) == "4"


def test_edit_an_earlier_result_within_a_drawn_mask(served: Serving, browser: Browser) -> None:
    body = {"model": "atelier/sketch", "prompt": "a lighthouse at dusk, calm sea", "size": "256x256"}
    assert served.call("POST", "/compat/v1/images/generations", body).status == 200
    open_task(browser, served, "edit")
    assert browser.text("#price") == "Add an image first."
    browser.press("Earlier results")
    browser.until(lambda: browser.has(".picks button"), "earlier results are not offered")
    browser.click(".picks button")
    browser.until(lambda: browser.has("#draw-mask"), "no mask can be drawn")
    browser.click("#draw-mask")
    browser.until(lambda: browser.has("#mask"), "the image is not shown")
    browser.run(DRAW)
    browser.press("Use this mask")
    browser.until(lambda: browser.has(".mask-preview img"), "the mask is not kept")
    mask = Image.open(
        BytesIO(b64decode(browser.run("return document.querySelector('.mask-preview img').src.split(',')[1]")))
    )
    alpha = mask.convert("RGBA").getchannel("A")
    assert (mask.size, alpha.getpixel((128, 64)), alpha.getpixel((128, 200))) == ((256, 256), 0, 255)
    assert sum(alpha.histogram()[1:255]) == 0  # every pixel is open or closed
    browser.fill(browser.labelled("Prompt"), "make it a starry night")
    browser.fill(browser.labelled("size"), "auto")
    make(browser)
    browser.until(
        lambda: browser.run("return document.querySelector('.run .outputs img')?.naturalWidth ?? 0") == 256, "no image"
    )
    [request] = served.call("GET", "/v1/requests?limit=1").json["data"]
    assert (request["endpoint"], request["status"]) == ("/compat/v1/images/edits", "completed")
    assert browser.errors() == []


def test_what_was_made_is_offered_as_the_input_of_the_next_task(served: Serving, browser: Browser) -> None:
    body = {"model": "atelier/sketch", "prompt": "a pear", "size": "256x256"}
    made = served.call("POST", "/compat/v1/images/generations", body).json
    open_task(browser, served, "image")
    browser.until(lambda: browser.has(f".gallery a[href='#/requests/{made['id']}'] img"), "it is not shown")
    browser.fill(browser.labelled("size"), "128x128")
    make(browser)
    browser.until(lambda: browser.run(IMAGE_WIDTH) == 128, "no image")
    newest = "return document.querySelector('.gallery a')?.getAttribute('href')"
    browser.until(lambda: browser.run(newest) != f"#/requests/{made['id']}", "what was just made is not among them")
    for button, page in (("Animate", "video"), ("Upscale", "upscale"), ("Edit", "edit")):
        browser.go("playground/image")
        browser.press(button, ".outputs")
        browser.until(lambda page=page: browser.run("return location.hash").startswith(f"#/playground/{page}?"), page)  # type: ignore[misc]
        browser.until(
            lambda: browser.run("return document.querySelector('.thumbs img')?.naturalWidth") == 128,
            f"no input: {page}",
        )
    browser.click(".gallery button")  # of what was made lately, the newest
    browser.until(
        lambda: browser.run("return document.querySelectorAll('.thumbs img').length") == 1, "it is not the input"
    )
    assert browser.errors() == []


def test_upscale_a_file_from_the_disk(served: Serving, browser: Browser, tmp_path: Path) -> None:
    write_image(tmp_path / "small.png")
    open_task(browser, served, "upscale")
    browser.type("input[type=file]", str(tmp_path / "small.png"))
    browser.until(lambda: browser.has(".thumbs img"), "the file is not shown")
    browser.fill(browser.labelled("scale_factor"), "3")
    make(browser)
    browser.until(lambda: browser.run(IMAGE_WIDTH) == 192, "no image")


def test_a_video_is_followed_over_a_reload_until_it_plays(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "video")
    browser.fill(browser.labelled("seconds"), "1")
    browser.fill(browser.labelled("size"), "320x180")
    browser.until(lambda: browser.text("#price") == "$0.001", "no price is shown")
    make(browser)
    browser.until(
        lambda: bool(browser.run("return JSON.parse(sessionStorage.getItem('runs'))?.[0]?.lanes[0].requestId")), "no id"
    )
    browser.open("about:blank")
    browser.open(served.url + "/#/playground/video")
    plays = "const video = document.querySelector('.outputs video'); if (!video) return false; video.muted = true;"
    plays += "video.play().catch(() => {}); return video.duration > 0.5"
    browser.until(lambda: bool(browser.run(plays)), "no video")
    assert "320 × 180" in browser.text(".measures")
    browser.open("about:blank")
    browser.open(served.url + "/#/playground/video")  # finished, and loaded again
    browser.until(lambda: browser.has(".outputs video"), "the finished video is lost after a reload")
    assert browser.errors() == []


def test_an_image_is_followed_over_a_reload(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "image")
    browser.fill(browser.labelled("size"), "2048x2048")
    browser.until(lambda: browser.text("#price") == "$0.001", "no price is shown")
    make(browser)
    browser.until(
        lambda: bool(browser.run("return JSON.parse(sessionStorage.getItem('runs'))?.[0]?.lanes[0].requestId")), "no id"
    )
    assert browser.run("return JSON.parse(sessionStorage.getItem('runs'))[0].lanes[0].state") == "working"
    browser.open("about:blank")
    browser.open(served.url + "/#/playground/image")
    browser.until(lambda: browser.run(IMAGE_WIDTH) > 0, "the image is lost after a reload")
    assert "2048 × 2048" in browser.text(".measures")
    assert browser.errors() == []


def test_a_video_that_fails_says_why(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "video")
    browser.fill(browser.labelled("Prompt"), "a lighthouse [fail]")
    make(browser)
    browser.until(lambda: "its prompt contains [fail]" in browser.text(".lane .notice.bad"), "no reason is shown")


def test_chat_streams_and_shows_tokens_and_cost(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "chat")
    browser.type("#message", "hello turbine")
    browser.until(lambda: browser.text("#price").startswith("At most $"), "no price is shown")
    browser.press("Send")
    browser.until(lambda: browser.text(".said").strip() == "hello turbine", "no answer")
    browser.until(lambda: browser.has(".answer .cost"), "no cost is shown")
    [request] = served.call("GET", "/v1/requests?limit=1").json["data"]
    tokens = browser.text(".answer .measures")
    assert "tokens in" in tokens
    assert request["id"] in browser.run("return document.querySelector('.answer a').href")
    browser.type("#message", "and again\ue007")  # the enter key sends
    browser.until(
        lambda: browser.run("return document.querySelectorAll('.turn').length") == 2, "the enter key does nothing"
    )
    browser.open("about:blank")
    browser.open(served.url + "/#/playground/chat")
    browser.until(lambda: browser.run("return document.querySelectorAll('.turn').length") == 2, "the reload lost it")
    assert browser.errors() == []


def test_chat_takes_images(served: Serving, browser: Browser, tmp_path: Path) -> None:
    write_image(tmp_path / "small.png")
    open_task(browser, served, "chat")
    browser.type("input[type=file]", str(tmp_path / "small.png"))
    browser.until(lambda: browser.has(".drop .thumbs img"), "the file is not shown")
    browser.type("#message", "what is this")
    browser.press("Send")
    browser.until(lambda: "[image]" in browser.text(".said"), "the model has not seen the image")
    assert browser.has(".turn .thumbs img")
    assert not browser.has(".drop .thumbs img"), "the image would be sent again"
    assert browser.errors() == []


def test_models_are_compared_side_by_side(served: Serving, browser: Browser, lab: ScriptedProvider) -> None:
    open_task(browser, served, "image")
    browser.click("#compare")
    browser.until(lambda: "for 2 models" in browser.text("#price"), "the price is not that of both")
    make(browser)
    browser.until(
        lambda: (
            browser.run(
                "return [...document.querySelectorAll('.lane .outputs img')].filter((each) => each.naturalWidth).length"
            )
            == 2
        ),
        "not both have made an image",
    )
    lanes = browser.run("return [...document.querySelectorAll('.lane')].map((each) => each.innerText)")
    assert len(lanes) == 2
    for lane in lanes:
        assert "×" in lane
        assert "$" in lane
        assert " s" in lane or " ms" in lane


def test_text_of_others_is_never_markup(served: Serving, lab: ScriptedProvider, browser: Browser) -> None:
    evil = "<img src=x onerror=document.title='gone'><script>document.title='gone'</script>"
    lab.images.always(faults.error(500, evil))
    sign_in(browser, served.url, served.key, "playground/image?model=image-1")
    browser.until(lambda: browser.has("#run"), "the form is not shown")
    browser.fill(browser.labelled("Prompt"), evil)
    make(browser)
    browser.until(lambda: browser.has(".lane .notice.bad"), "the failure is not shown")
    assert evil in browser.text(".run")
    found = browser.run("return [document.title, document.querySelectorAll('main script, main img[src=x]').length]")
    assert found == ["Playground · Penstock", 0]


def wait_for_form(browser: Browser, task: str) -> None:
    current = f".tabs a[href='#/playground/{task}'][aria-current]"
    browser.until(lambda: browser.has(current) and browser.has("#run"), task)


def copied_code(browser: Browser, language: str) -> str:
    """What the button puts on the clipboard."""
    browser.run("window.copied = null; navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    browser.press(language, "dialog")
    current = "return document.querySelector('dialog [aria-pressed=true]').innerText"
    browser.until(lambda: browser.run(current) == language, f"{language} is not chosen")
    browser.press("Copy", "dialog")
    browser.until(lambda: browser.run("return window.copied") is not None, "it is not copied")
    browser.until(lambda: "Copied" not in browser.text("dialog .snippet"), "the button stays as it is")
    return str(browser.run("return window.copied"))


def run_code(code: dict[str, str], key: str, folder: Path) -> dict[str, str]:
    """Run each snippet as pasted, with a key in its place, and return what it printed."""
    code = {language: text.replace("YOUR_KEY", key) for language, text in code.items()}
    (folder / "run.py").write_text(code["Python"])
    (folder / "run.mjs").write_text(code["Node"])
    commands = {"curl": ["bash", "-c", code["curl"]], "Python": [sys.executable, "-W", "ignore", "run.py"]}
    if shutil.which("node"):
        commands["Node"] = ["node", "run.mjs"]
    return {
        language: subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
        for language, command in commands.items()
    }


@pytest.mark.timeout(240)
def test_the_copied_code_works_as_pasted(served: Serving, browser: Browser, tmp_path: Path) -> None:
    write_image(tmp_path / "small.png")
    sign_in(browser, served.url, served.key)
    for task in ("image", "edit", "upscale", "video"):
        browser.go(f"playground/{task}")
        wait_for_form(browser, task)
        if task in ("edit", "upscale"):
            browser.type("input[type=file]", str(tmp_path / "small.png"))
            browser.until(lambda: browser.has(".thumbs img"), "the file is not shown")
        if task in ("image", "edit"):
            browser.fill(browser.labelled("size"), "256x256")
        if task != "upscale":
            browser.fill(browser.labelled("Prompt"), 'it\'s a "calm" sea $HOME `id` \\')
            browser.fill(browser.labelled("seed"), "7")
        if task == "video":
            browser.fill(browser.labelled("seconds"), "1")
        before = None
        if task == "edit":
            browser.press("Code", ".bench")
            before = copied_code(browser, "curl")
            browser.click("dialog header button")
        make(browser)
        browser.until(lambda: browser.has(".lane .outputs"), f"{task} made nothing")
        browser.press("Code", ".run")
        code = {language: copied_code(browser, language) for language in ("curl", "Python", "Node")}
        shown = browser.text("#code")
        assert served.key not in shown
        assert before in (None, code["curl"])
        browser.click("dialog header button")
        printed = run_code(code, served.key, tmp_path)
        first = printed.pop("curl")
        if task == "video":
            assert first == "Saved video.mp4\n"
            assert (tmp_path / "video.mp4").read_bytes()[4:8] == b"ftyp"
        else:
            assert json.loads(first)["data"][0]["url"].startswith(served.url), first
        assert all(served.url in text for text in printed.values()), printed
    requests = served.call("GET", "/v1/requests?limit=100").json["data"]
    assert [request for request in requests if request["status"] in ("rejected", "upstream_failure")] == []

    browser.go("playground/chat")
    browser.until(lambda: browser.has("#message"), "no chat")
    browser.type("#message", "it's a turbine")
    browser.press("Code")
    code = {language: copied_code(browser, language) for language in ("curl", "Python", "Node")}
    printed = run_code(code, served.key, tmp_path)
    assert "turbine" in printed["curl"]
    assert all(text.strip() == "it's a turbine" for language, text in printed.items() if language != "curl"), printed


def is_heading(browser: Browser, text: str) -> bool:
    return browser.text("main h1") == text


def test_the_page_of_a_model_shows_a_call_as_code(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key)
    for model, needs in (("sketch", ""), ("retouch", "input.png"), ("clip", ""), ("echo", "")):
        browser.go(f"models/atelier/{model}")
        name = f"atelier/{model}"
        browser.until(partial(is_heading, browser, name), f"{model} is not shown")
        browser.press("Code", "main")
        browser.until(lambda: browser.has("#code"), "no code is shown")
        assert f"atelier/{model}" in browser.text("#code")
        assert needs in browser.text("dialog .body > .row:last-child")
        browser.click("dialog header button")
    assert browser.errors() == []


EDGES = (
    "const [a, b] = [...arguments].map((each) => document.querySelector(each).getBoundingClientRect()); return [a, b]"
)


def test_the_result_stands_beside_the_form_or_in_view(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key)
    browser.resize(1024, 768)
    browser.go("playground/image")
    wait_for_form(browser, "image")
    form, results = browser.run(EDGES, ".bench", ".results")
    assert (form["top"], form["right"] < results["left"]) == (results["top"], True)
    browser.resize(390, 844)
    make(browser)

    def is_in_view() -> bool:
        bar, results = browser.run(EDGES, ".side", ".run")
        return bool(bar["bottom"] <= results["top"] < 844 / 2)

    browser.until(is_in_view, "the result is below the screen, or behind the bar")


def test_the_keyboard_starts_a_run_from_any_field(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key, "playground/image")
    browser.until(lambda: browser.text("#price").startswith("$"), "no price is shown")
    pressed = "new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true, bubbles: true, cancelable: true})"
    browser.run(f"document.querySelector(arguments[0]).dispatchEvent({pressed})", browser.labelled("n"))
    browser.until(lambda: browser.has(".run"), "nothing is run")
