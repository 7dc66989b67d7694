"""One line per call, readable or as JSON, with nothing that a caller sent but the model."""

import asyncio
import io
import json
import re
from typing import Any

import pytest

from penstock.api.access_log import AccessLine, AccessLog
from penstock.settings import Settings
from penstock.telemetry.logs import Style
from tests.loop_time import pass_time

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
    async def write() -> None:
        log = AccessLog(style)
        log.add(AccessLine(**{**FULL, **changes}))
        log.write()

    asyncio.run(write())
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


async def test_lines_are_written_together_soon_after_their_calls(capsys: pytest.CaptureFixture[str]) -> None:
    log = AccessLog("json")
    for number in range(3):
        log.add(AccessLine(**{**FULL, "request_id": f"req_{number}"}))
    assert capsys.readouterr().err == ""
    pass_time(0.1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["request_id"] for line in lines] == ["req_0", "req_1", "req_2"]


def test_a_write_has_whole_lines_and_no_more_than_a_pipe_takes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[str] = []

    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return len(text)

    async def add() -> None:
        log = AccessLog("json")
        for number in range(100):
            log.add(AccessLine(**{**FULL, "request_id": f"req_{number}"}))
        monkeypatch.setattr("sys.stderr", Pipe())
        log.write()

    asyncio.run(add())
    monkeypatch.undo()
    assert 1 < len(writes) < 20
    assert all(len(text) <= 4096 and text.endswith("\n") for text in writes)
    ids = [json.loads(line)["request_id"] for line in "".join(writes).splitlines()]
    assert ids == [f"req_{number}" for number in range(100)]
