"""Places that fail on request: only where named, only when told, only as often as told."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import failpoints
from penstock.failpoints import NAMES, failpoint

SOURCE = Path(failpoints.__file__).parent
PASSES = """
import sys
from penstock.failpoints import Tripped, failpoint
for number in range(1, 5):
    try:
        failpoint("settle.in_tx")
    except Tripped as problem:
        print(number, "tripped at", problem)
    else:
        print(number, "passed", flush=True)
"""


def passing(told: str) -> subprocess.Popen[str]:
    """A process that passes one place four times, with what the environment says of failpoints."""
    environ = {**os.environ, "PENSTOCK_FAILPOINTS": told}
    return subprocess.Popen([sys.executable, "-c", PASSES], env=environ, stdout=-1, stderr=-1, text=True)


def lines(told: str) -> list[str]:
    with passing(told) as process:
        out, _ = process.communicate(timeout=30)
    return out.splitlines()


def test_places_are_inert_by_default() -> None:
    for name in NAMES:
        failpoint(name)


def test_a_place_raises_every_time() -> None:
    assert lines("settle.in_tx=raise") == [f"{number} tripped at settle.in_tx" for number in range(1, 5)]


def test_a_place_raises_at_the_passage_it_was_told() -> None:
    assert lines("settle.in_tx=raise:3") == ["1 passed", "2 passed", "3 tripped at settle.in_tx", "4 passed"]


def test_other_places_are_left_alone() -> None:
    assert lines("accept.in_tx=raise, poll.mid=kill") == [f"{number} passed" for number in range(1, 5)]


def test_a_place_that_sleeps_goes_on() -> None:
    assert lines("settle.in_tx=sleep:1") == [f"{number} passed" for number in range(1, 5)]


def test_a_place_kills_without_mercy() -> None:
    with passing("settle.in_tx=kill:2") as process:
        out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == ("1 passed\n", -signal.SIGKILL)


def test_a_place_stops_the_process_until_it_is_woken() -> None:
    with passing("settle.in_tx=stop:2") as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=30)
    assert out.splitlines() == [f"{number} passed" for number in range(1, 5)]


@pytest.mark.parametrize(
    "told",
    [
        "settle.in_tx",
        "settle.in_tx=",
        "settle.in_tx=explode",
        "nowhere=kill",
        "settle.in_tx=kill:x",
        "settle.in_tx=kill:-1",
    ],
)
def test_a_mistake_stops_the_start(told: str) -> None:
    with passing(told) as process:
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"ValueError: no such failpoint: {told}" in err


def test_every_name_is_a_place_and_every_place_has_a_name() -> None:
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert set(re.findall(r'\bfailpoint\("([\w.]+)"\)', text)) == NAMES
