"""One line per call, readable or as JSON, with nothing that a caller sent but the model."""

import json
import re
from typing import Any

import pytest

from penstock.api.access_log import AccessLine, AccessLog
from penstock.settings import Settings
from penstock.telemetry.logs import Style

FULL: dict[str, Any] = {
    "method": "POST",
    "route": "/compat/v1/chat/completions",
    "status": 200,
    "ms": 12.34,
    "overhead_ms": 1.5,
    "request_id": "req_1",
    "org_id": "org_1",
    "key_id": "key_1",
    "model": "lab/chat-1",
    "provider": "lab",
    "cost_usd": 0.00012,
}


def written(capsys: pytest.CaptureFixture[str], style: Style, **changes: Any) -> str:
    AccessLog(style).write(AccessLine(**{**FULL, **changes}))
    text = capsys.readouterr().err
    assert text.endswith("\n")
    assert text.count("\n") == 1
    return text[:-1]


def test_a_line_of_json_has_the_fields_of_the_call_and_those_of_other_log_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = json.loads(written(capsys, "json"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("timestamp"))
    assert line == {**FULL, "event": "call", "level": "info"}


def test_a_readable_line_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(capsys, "text")
    assert text[8:] == (
        " POST   /compat/v1/chat/completions 200  12.3 ms  lab/chat-1 by lab  $0.00012  own 1.5 ms  req_1"
    )
    failed = {"status": 404, "code": "MODEL_NOT_FOUND", "provider": None, "cost_usd": None, "overhead_ms": None}
    assert "404  12.3 ms  MODEL_NOT_FOUND  lab/chat-1  req_1" in written(capsys, "text", **failed)


def test_the_status_has_a_colour_only_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    colours = {200: "32", 304: "36", 404: "33", 499: "33", 502: "31"}
    found = {
        status: f"\033[{colours[status]}m{status}" in written(capsys, "colour", status=status) for status in colours
    }
    assert found == dict.fromkeys(colours, True)
    assert "\033" not in written(capsys, "text")


@pytest.mark.parametrize("style", ["json", "text", "colour"])
def test_a_model_cannot_write_lines_of_its_own_or_show_a_key(style: Style, capsys: pytest.CaptureFixture[str]) -> None:
    text = written(capsys, style, model="a\n\x1b[2J sk-proj-0123456789")
    assert "\x1b[2J" not in text
    assert "0123456789" not in text
    assert "[secret]" in text


def test_settings_turn_the_lines_off() -> None:
    settings: dict[str, dict[str, Any]] = {
        "on": {},
        "off": {"access_log": False},
        "only warnings": {"log_level": "warning"},
    }
    found = {name: AccessLog.of(Settings(**changes)) is not None for name, changes in settings.items()}
    assert found == {"on": True, "off": False, "only warnings": False}
