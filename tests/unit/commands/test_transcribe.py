"""`penstock transcribe`: files, pipes, subtitles, prices."""

import json
from pathlib import Path

import pytest

from tests import sounds
from tests.unit.commands.conftest import Command, TypeOnStdin


@pytest.fixture
def tone(folder: Path) -> str:
    (folder / "tone.mp3").write_bytes(sounds.encoded("mp3", 2.0))
    return "tone.mp3"


def test_what_is_said_is_printed_with_its_cost(run: Command, tone: str) -> None:
    ended = run("transcribe", tone)
    assert (ended.status, ended.out) == (0, "[sound]\n"), ended.err
    assert "atelier/listen, $0.00002" in ended.err


def test_the_ending_of_the_file_chooses_the_format(run: Command, tone: str, folder: Path) -> None:
    for name, beginning in (("a.srt", "1\n00:00:00,000 --> "), ("a.vtt", "WEBVTT\n"), ("a.txt", "[sound]\n")):
        ended = run("transcribe", tone, "-o", name)
        assert (ended.status, ended.out) == (0, ""), ended.err
        assert (folder / name).read_text().startswith(beginning)
        assert f"Saved {name} (" in ended.err
    run("transcribe", tone, "-o", "a.json", "--translate")
    assert json.loads((folder / "a.json").read_text())["task"] == "translate"


def test_a_sound_comes_from_a_pipe(run: Command, type_on_stdin: TypeOnStdin) -> None:
    type_on_stdin(sounds.wav(1.0))
    assert json.loads(run("transcribe", "-", "--json").out)["duration"] == 1.0


def test_the_price_before(run: Command, tone: str) -> None:
    ended = run("transcribe", tone, "--dry-run")
    assert "seconds of input at $0.00001" in ended.out, ended.err


def test_what_cannot_be_transcribed_is_said(run: Command, tone: str, folder: Path) -> None:
    (folder / "notes.txt").write_text("no sound at all")
    refused = run("transcribe", "notes.txt")
    assert refused.status == 1
    assert "not a usable sound" in refused.err
    assert "cannot be read" in run("transcribe", "nothing.mp3").err
    assert "must be one of" in run("transcribe", tone, "--format", "ass").err
    assert "name=value" in run("transcribe", tone, "--set", "language").err
