"""The playground's tabs about sound: speak, make effects and music, and transcribe what was made."""

import subprocess
from base64 import b64encode
from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.browser.form import make, open_task
from tests.stories.processes import Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

_SECONDS = "return document.querySelector('.run audio')?.duration ?? 0"
_BARS = "return (document.querySelector('.run .waveform path')?.getAttribute('d').match(/M/g) ?? []).length"
_CHOOSE = """
const bytes = Uint8Array.from(atob(arguments[0]), (letter) => letter.charCodeAt(0));
const files = new DataTransfer();
files.items.add(new File([bytes], 'hello.mp3', {type: 'audio/mpeg'}));
const field = document.querySelector('form input[type=file]');
field.files = files.files;
field.dispatchEvent(new Event('change', {bubbles: true}));
"""


def spoken(served: Serving, text: str) -> bytes:
    body = {"model": "atelier/voice", "input": text}
    return served.call("POST", "/compat/v1/audio/speech", body).body


def test_speech_has_its_price_before_and_is_heard_after(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "speech")
    browser.fill(browser.labelled("Text"), "One, two, three, four, five, six, seven.")
    browser.until(lambda: browser.text("#price") == "$0.00004", "no price is shown")
    browser.fill(browser.labelled("Voice"), "onyx")
    browser.fill(browser.labelled("speed"), "0.5")
    make(browser)
    browser.until(lambda: (browser.run(_SECONDS) or 0) > 4, "the sound is not loaded, or not slow")
    browser.until(lambda: browser.run(_BARS) == 160, "no waveform is drawn")
    browser.until(lambda: "$0.00004" in browser.text(".measures"), "the cost is not shown")
    [request] = served.call("GET", "/v1/requests?limit=1").json["data"]
    assert (request["kind"], request["prompt"]) == ("speech", "One, two, three, four, five, six, seven.")
    asked = served.call("GET", f"/v1/requests/{request['id']}/payloads").json["request"]
    assert (asked["voice"], asked["speed"]) == ("onyx", 0.5)

    browser.press("Transcribe", ".outputs")
    browser.until(lambda: "playground/transcription" in browser.run("return location.hash"), "it is not sent on")
    make(browser)
    browser.until(lambda: "[speech]" in browser.text(".transcript"), "no transcript")
    browser.open(f"{served.url}/#/requests/{request['id']}")
    browser.press("Run again")
    browser.until(lambda: browser.value(browser.labelled("Voice")) == "onyx", "the form does not have the voice")
    assert browser.value(browser.labelled("Text")) == "One, two, three, four, five, six, seven."
    assert browser.errors() == []


def test_a_voice_is_heard_at_its_price(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "speech")
    browser.until(lambda: browser.text("#hear").startswith("Hear it · $0.0000"), "the voice has no price")
    browser.click("#hear")
    heard = "return document.querySelector('form audio')?.duration ?? 0"
    browser.until(lambda: (browser.run(heard) or 0) > 1, "the voice is not heard")
    assert browser.errors() == []


def test_effects_and_music_are_heard_and_are_made_again_where_they_were_made(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "music")
    browser.fill(browser.labelled("seconds"), "4")
    browser.until(lambda: browser.text("#price") == "$0.0008", "no price is shown")
    make(browser)
    browser.until(lambda: 3.9 < (browser.run(_SECONDS) or 0) < 4.5, "no music of this length")
    browser.until(lambda: browser.run(_BARS) == 160, "no waveform is drawn")
    [output] = served.call("GET", "/v1/outputs").json["data"]
    browser.go(f"library?show={output['id']}")
    browser.until(lambda: browser.has("dialog .player audio"), "the library has no player")
    browser.until(lambda: browser.has("#again"), "it cannot be made again")
    browser.click("#again")
    browser.until(lambda: "playground/music" in browser.run("return location.hash"), "not where it was made")
    assert browser.value(browser.labelled("seconds")) == "4"
    browser.go("playground/sound")
    browser.until(lambda: browser.has("#run"), "no form of effects")
    make(browser)
    browser.until(lambda: (browser.run(_SECONDS) or 0) > 1, "no effect")
    assert browser.errors() == []


def test_transcribe_a_file_and_play_it_from_a_piece(served: Serving, browser: Browser) -> None:
    open_task(browser, served, "transcription")
    assert browser.text("#price") == "Add a sound first."
    browser.run(_CHOOSE, b64encode(spoken(served, "Hello. This is a test of sound.")).decode())
    browser.until(lambda: browser.text("#price").startswith("$0.0000"), "no price is shown")
    make(browser)
    browser.until(lambda: browser.has(".segments button"), "no pieces with times")
    assert "[speech]" in browser.text(".transcript")
    browser.until(lambda: (browser.run(_SECONDS) or 0) > 1, "the sound that was sent cannot be heard")
    starts = "return [...document.querySelectorAll('.segments button')].map((each) => each.innerText)"
    assert browser.run(starts)[0] == "0:00"
    assert browser.errors() == []


def test_code_of_calls_about_sound_works_as_pasted(served: Serving, browser: Browser, tmp_path: Path) -> None:
    open_task(browser, served, "speech")
    browser.until(lambda: not browser.run("return document.querySelector('#show-code').disabled"), "no code yet")
    browser.click("#show-code")
    browser.until(lambda: browser.has("#code"), "no code")
    code = browser.text("#code").replace("YOUR_KEY", served.key)
    subprocess.run(["bash", "-c", code], cwd=tmp_path, check=True, capture_output=True)
    made = (tmp_path / "speech.mp3").read_bytes()
    assert made[:3] == b"ID3" or made[0] == 0xFF
    assert browser.errors() == []
