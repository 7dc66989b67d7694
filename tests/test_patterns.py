"""Regular expressions of the source that Python matches wrongly in releases that are supported."""

import importlib
import re
from collections.abc import Iterator
from re import _parser  # the only way to look into an expression
from typing import Any

import pytest

from penstock.long_bodies.long_texts import GO_BACK
from tests.source_tree import SOURCE


def patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from patterns_in([*value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from patterns_in(item)


def patterns_of_the_source() -> dict[str, re.Pattern[Any]]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        if "re.compile(" in path.read_text():
            name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
            module = importlib.import_module(name.removesuffix(".__init__"))
            for variable, value in vars(module).items():
                for number, pattern in enumerate(patterns_in(value)):
                    found[f"{name}.{variable}.{number}"] = pattern
    return found


def forgets_to_go_back(parsed: Any) -> bool:
    """Whether an expression has a possessive group that can fail after it has begun to match, other than one whose last
    alternative fails at once. Until Python 3.11.4 such a group then matches what it has only tried.
    """
    for operation, argument in parsed:
        if str(operation) == "POSSESSIVE_REPEAT":
            group = list(argument[2])
            is_one_character = len(group) == 1 and str(group[0][0]) in ("IN", "LITERAL", "NOT_LITERAL", "ANY")
            fails_at_once = len(group) == 1 and str(group[0][0]) == "BRANCH" and _never_matches(group[0][1][1][-1])
            if not is_one_character and not fails_at_once:
                return True
        if any(forgets_to_go_back(part) for part in _parts(argument)):
            return True
    return False


def _never_matches(alternative: Any) -> bool:
    return [str(operation) for operation, _ in alternative] in (["ASSERT_NOT"], ["FAILURE"])


def _parts(argument: Any) -> Iterator[Any]:
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from _parts(item)


@pytest.mark.parametrize(
    ("pattern", "is_wrong"),
    [
        (rb'[^"]++', False),
        (rb'(?:[^"]++|"[^"]{0,3}+")*+', True),
        (rb'(?:[^"]++|"[^"]{0,3}+"' + GO_BACK + rb")*+", False),
        (rb'"(\\.)*+"', True),
        (rb'a|b(?:c(?:de)++)*', True),
    ],
)  # fmt: skip
def test_wrong_ones_are_recognised(pattern: bytes, is_wrong: bool) -> None:
    assert forgets_to_go_back(_parser.parse(pattern)) is is_wrong


def test_possessive_groups_go_back() -> None:
    patterns = patterns_of_the_source()
    assert len(patterns) > 50
    wrong = [
        name for name, pattern in patterns.items() if forgets_to_go_back(_parser.parse(pattern.pattern, pattern.flags))
    ]
    assert wrong == []
