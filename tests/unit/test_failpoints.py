"""Failpoints act only where the environment names them, and only as often as it says."""

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
from penstock.failpoints import FailpointRaised, failpoint
for number in range(1, 5):
    try:
        failpoint("settle.in_tx")
    except FailpointRaised as problem:
        print(number, "raised at", problem)
    else:
        print(number, "passed", flush=True)
"""


def start_process(failpoints_text: str) -> subprocess.Popen[str]:
    """Start a process that passes one failpoint four times."""
    environ = {**os.environ, "PENSTOCK_FAILPOINTS": failpoints_text}
    return subprocess.Popen([sys.executable, "-c", PASSES], env=environ, stdout=-1, stderr=-1, text=True)


def output_lines(failpoints_text: str) -> list[str]:
    with start_process(failpoints_text) as process:
        out, _ = process.communicate(timeout=30)
    return out.splitlines()


def test_failpoints_do_nothing_by_default() -> None:
    for name in NAMES:
        failpoint(name)


def test_a_failpoint_raises_every_time() -> None:
    assert output_lines("settle.in_tx=raise") == [f"{number} raised at settle.in_tx" for number in range(1, 5)]


def test_a_failpoint_raises_at_the_given_passage() -> None:
    assert output_lines("settle.in_tx=raise:3") == ["1 passed", "2 passed", "3 raised at settle.in_tx", "4 passed"]


def test_other_failpoints_do_nothing() -> None:
    assert output_lines("accept.in_tx=raise, poll.mid=kill") == [f"{number} passed" for number in range(1, 5)]


def test_a_failpoint_that_sleeps_goes_on() -> None:
    assert output_lines("settle.in_tx=sleep:1") == [f"{number} passed" for number in range(1, 5)]


def test_a_failpoint_kills_the_process() -> None:
    with start_process("settle.in_tx=kill:2") as process:
        out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == ("1 passed\n", -signal.SIGKILL)


def test_a_failpoint_stops_the_process_until_it_is_continued() -> None:
    with start_process("settle.in_tx=stop:2") as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=30)
    assert out.splitlines() == [f"{number} passed" for number in range(1, 5)]


@pytest.mark.parametrize(
    "text",
    [
        "settle.in_tx",
        "settle.in_tx=",
        "settle.in_tx=explode",
        "nowhere=kill",
        "settle.in_tx=kill:x",
        "settle.in_tx=kill:-1",
    ],
)
def test_a_malformed_failpoint_stops_the_start(text: str) -> None:
    with start_process(text) as process:
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"ValueError: PENSTOCK_FAILPOINTS: not a failpoint: {text}; " in err


def test_every_name_is_used_and_every_use_has_a_name() -> None:
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert set(re.findall(r'\bfailpoint\("([\w.]+)"\)', text)) == NAMES
