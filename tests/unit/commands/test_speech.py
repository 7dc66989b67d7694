"""`penstock speech` and `penstock voices`: files, pipes, prices, long texts."""

import json
import subprocess
import sys
from pathlib import Path

from tests import sounds
from tests.stories.processes import Serving
from tests.unit.commands.conftest import Command, TypeOnStdin


def test_a_text_is_spoken_into_a_file_whose_ending_chooses_the_format(run: Command, folder: Path) -> None:
    ended = run("speech", "Hello there.", "-o", "hello.flac", "--voice", "nova", "--speed", "1.5")
    assert (ended.status, ended.out) == (0, ""), ended.err
    assert "Saved hello.flac (" in ended.err
    assert "atelier/voice, $0.000012, " in ended.err
    assert sounds.container_of((folder / "hello.flac").read_bytes()) == "flac"


def test_a_text_from_a_pipe_and_a_price_before(run: Command, folder: Path, type_on_stdin: TypeOnStdin) -> None:
    type_on_stdin(b"Good morning.\n")
    ended = run("speech", "-o", "morning.mp3", "--json")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["size_bytes"] == (folder / "morning.mp3").stat().st_size
    ended = run("speech", "Good morning.", "--dry-run")
    assert "13 characters at $0.000001" in ended.out


def test_sound_goes_to_a_pipe(served: Serving) -> None:
    command = [sys.executable, "-m", "penstock", "speech", "Hello.", "-o", "-"]
    ended = subprocess.run(
        command,
        capture_output=True,
        check=True,
        env={"PENSTOCK_URL": served.url, "PENSTOCK_KEY": served.key, "PATH": "/usr/bin:/bin"},
    )
    assert sounds.container_of(ended.stdout) == "mp3"


def test_a_long_text_is_a_job_whose_file_is_saved(run: Command, folder: Path, type_on_stdin: TypeOnStdin) -> None:
    type_on_stdin(b"Yes. " + b"\xc2\xa0" * 20_000)
    ended = run("speech", "-o", "long.wav")
    assert ended.status == 0, ended.err
    assert sounds.container_of((folder / "long.wav").read_bytes()) == "wav"


def test_what_the_gateway_refuses_is_said(run: Command) -> None:
    ended = run("speech", "Hello.", "-o", "hello.mp3", "--voice", "nobody")
    assert ended.status == 1
    assert "`voice` of atelier/voice must be one of" in ended.err
    assert "names no known format" in run("speech", "Hello.", "-o", "hello.txt").err


def test_voices_are_listed_and_found(run: Command) -> None:
    listed = run("voices", "atelier/voice")
    assert listed.status == 0, listed.err
    assert len(listed.out.splitlines()) == 13
    found = json.loads(run("voices", "--search", "shimmer", "--json").out)
    assert [voice["id"] for voice in found if voice["provider"] == "atelier"] == ["shimmer"]
