"""The table of promises in tests/faults/README.md names tests that exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = TESTS / "faults" / "README.md"


def test_every_promise_has_its_tests() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", TABLE.read_text())
    assert len(named) > 50
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (TESTS / path).exists() or f"def {name}(" not in (TESTS / path).read_text()
    ]
    assert missing == []


def test_every_promise_has_its_number() -> None:
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", TABLE.read_text(), re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
