"""Guards are read from the tables of penstock.toml, and mistakes are named."""

from typing import Any

import pytest

from penstock.guards.configured import read_guards
from penstock.typed_config import Misconfigured
from penstock.values import OrgId

RULES = {"rules": {"words": ["x"]}}


def test_a_guard_watches_the_kinds_and_organizations_that_it_names() -> None:
    all_of, some = read_guards({"a": RULES, "b": {**RULES, "kinds": ["video"], "orgs": ["org_1"]}})
    assert all_of.watches("chat", OrgId("org_2"), "input")
    assert some.watches("video", OrgId("org_1"), "input")
    assert not some.watches("image", OrgId("org_1"), "input")
    assert not some.watches("video", OrgId("org_2"), "input")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("x", "guards.a must be a table"),
        ({}, "must have one of"),
        ({**RULES, "http": {"url": "https://guard.test/"}}, "must have one of"),
        ({"http": {"url": "http://guard.test/"}}, "plain http may go only to this machine"),
        ({"http": {"url": "ftp://guard.test/"}}, "https://host"),
        ({"http": {"url": "https://guard.test/", "timeout_seconds": 11}}, "timeout_seconds"),
        ({**RULES, "kinds": ["films"]}, "kinds"),
        ({**RULES, "on_hit": "warn"}, "on_hit"),
        ({**RULES, "when": "output", "kinds": ["image"]}, "only the kinds `chat`, `transcription`"),
        ({"http": {"url": "https://guard.test/"}, "when": "output", "kinds": ["sound"]}, "only the kinds"),
        ({**RULES, "when": "after"}, "when"),
        ({"rules": {"word": ["x"]}}, "word"),
    ],
)
def test_mistakes_are_named(table: Any, words: str) -> None:
    with pytest.raises(Misconfigured, match=words.replace("(", r"\(")):
        read_guards({"a": table})


def test_a_guard_of_outputs_watches_no_calls() -> None:
    (guard,) = read_guards({"a": {"http": {"url": "https://guard.test/"}, "when": "output"}})
    assert guard.watches("video", OrgId("org_1"), "output")
    assert not guard.watches("video", OrgId("org_1"), "input")
    assert guard.watches("chat", OrgId("org_1"), "output")
    assert not guard.watches("speech", OrgId("org_1"), "output"), "it has nothing to see"


def test_plain_http_may_go_to_this_machine() -> None:
    (guard,) = read_guards({"a": {"http": {"url": "http://127.0.0.1:9/x"}}})
    assert guard.http is not None


def test_rules_read_what_is_written_and_see_nothing() -> None:
    (guard,) = read_guards({"a": {**RULES, "when": "output"}})
    assert guard.watches("chat", OrgId("org_1"), "output")
    assert guard.watches("transcription", OrgId("org_1"), "output")
    assert not guard.watches("image", OrgId("org_1"), "output")
