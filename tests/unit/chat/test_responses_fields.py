"""Fields of a Responses call that a chat call does not get: their types, and what needs another field."""

from typing import Any

import pytest

from penstock.chat.responses_fields import check_values
from penstock.errors import InvalidRequest

TOOL = {"type": "function", "name": "f"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"stream_options": {"include_obfuscation": False}}, "stream_options"),
        ({"stream": True, "stream_options": 3}, "stream_options"),
        ({"prompt_cache_key": 3}, "prompt_cache_key"),
        ({"safety_identifier": ["x"]}, "safety_identifier"),
        ({"n": 3}, "n"),
        ({"truncation": "middle"}, "truncation"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {"a" * 65: "x"}}, "metadata"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(body: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_values(body, 100)
    assert caught.value.param == param


def test_what_openais_clients_send_is_accepted() -> None:
    check_values({"tool_choice": "auto", "n": 1, "truncation": "auto", "safety_identifier": "u"}, 100)
    check_values({"tools": [TOOL], "tool_choice": "required", "stream": True, "stream_options": {}}, 100)
