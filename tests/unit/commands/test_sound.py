"""`penstock sound` and `penstock music`: files, pipes, prices, several at once, words of songs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sounds
from tests.stories.processes import Serving
from tests.unit.commands.conftest import Command


def test_a_sound_is_saved_in_the_format_of_the_files_ending(run: Command, folder: Path) -> None:
    ended = run("sound", "a bell", "--seconds", "1", "-o", "bell.flac")
    assert (ended.status, ended.out) == (0, ""), ended.err
    assert "Saved bell.flac (1 s, " in ended.err
    assert "atelier/sound, $0.0002, request req_" in ended.err
    assert sounds.container_of((folder / "bell.flac").read_bytes()) == "flac"


def test_music_is_priced_before_and_made(run: Command, folder: Path) -> None:
    priced = run("music", "a calm waltz", "--seconds", "3", "--dry-run")
    assert "3 seconds at $0.0002" in priced.out, priced.out + priced.err
    ended = run("music", "a calm waltz", "--seconds", "3", "-n", "2", "--json", "-o", "waltz.mp3")
    assert ended.status == 0, ended.err
    made = json.loads(ended.out)
    assert len(made["files"]) == 2
    for file in made["files"]:
        assert sounds.seconds_of((folder / file).read_bytes()) == pytest.approx(3, abs=0.1)


def test_a_sound_goes_to_a_pipe(served: Serving) -> None:
    command = [sys.executable, "-m", "penstock", "sound", "a click", "--seconds", "0.5", "-o", "-"]
    environment = {"PENSTOCK_URL": served.url, "PENSTOCK_KEY": served.key, "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert sounds.container_of(ended.stdout) == "mp3"


def test_the_words_of_a_song_are_read_from_a_file(run: Command, folder: Path) -> None:
    (folder / "verse.txt").write_text("La la la")
    ended = run("music", "a song", "--lyrics", "verse.txt", "--dry-run")
    assert ended.status == 1
    assert "`lyrics` is not supported by atelier/music" in ended.err


def test_what_the_gateway_refuses_or_fails_to_make_is_said(run: Command) -> None:
    assert "`seconds` of atelier/sound must be" in run("sound", "rain", "--seconds", "99", "-o", "x.mp3").err
    assert "names no known format" in run("sound", "rain", "-o", "rain.txt").err
    failed = run("sound", "[fail]", "--seconds", "1", "-o", "x.mp3")
    assert failed.status == 1
    assert "[fail]" in failed.err
