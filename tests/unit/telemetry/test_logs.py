"""Each log event is one line, of JSON or to read, from every logger and without credentials."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from penstock.telemetry.logs import configure_logs, redact_credentials

START = """
import logging
import structlog
from penstock.telemetry.logs import configure_logs
configure_logs({level!r}, {log_format!r})
log, plain = structlog.get_logger(), logging.getLogger("a.library")
"""


def log_lines(code: str, level: str = "info") -> list[dict[str, Any]]:
    """Run code in a process and return the lines it writes to stderr, each of which must be JSON."""
    return [json.loads(line) for line in written(code, level).splitlines()]


def written(code: str, level: str = "info", log_format: str = "auto") -> str:
    command = [sys.executable, "-c", START.format(level=level, log_format=log_format) + code]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == ""
    return process.stderr


def written_to_terminal(code: str, log_format: str, **environ: str) -> str:
    """What a process writes whose stderr is a terminal."""
    main, other = os.openpty()
    command = [sys.executable, "-c", START.format(level="info", log_format=log_format) + code]
    variables = {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, **environ}
    try:
        subprocess.run(command, stderr=other, check=True, env=variables)
    finally:
        os.close(other)
    with os.fdopen(main, "rb", buffering=0) as terminal:
        return terminal.read(65536).decode()


def test_an_event_is_one_line_with_its_fields() -> None:
    (line,) = log_lines("log.info('call ended', status=200, request_id='req_1', path='/a\\nb')")
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "call ended", "level": "info", "status": 200, "request_id": "req_1", "path": "/a\nb"}


def test_libraries_write_the_same_lines() -> None:
    (line,) = log_lines("plain.warning('%s is full', 'the disk')")
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "the disk is full", "level": "warning"}


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
@pytest.mark.parametrize("name", ["log", "plain"])
def test_only_the_level_and_above_is_written(name: str, level: str) -> None:
    levels = ["debug", "info", "warning", "error"]
    lines = log_lines("; ".join(f"{name}.{other}('x')" for other in levels), level)
    assert [line["level"] for line in lines] == levels[levels.index(level) :]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="log_level must be one of debug, info, warning, error"):
        configure_logs("loud")


def test_configuring_twice_writes_once() -> None:
    assert len(log_lines("configure_logs('info'); plain.info('x'); log.info('y')")) == 2


SECRETS = [
    "pk_0123456789abcdef_secret",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "sk-proj-abcdef0123456789",
    "r8_abcdef0123456789",
    "Bearer abcdef.0123-456",
    "bearer abcdef.0123-456",
    "https://x.example/v1?key=AIzaSyA0123456",
    "https://x.example/m/1?exp=1&sig=abcdef0123456789",
]


def test_credentials_are_redacted() -> None:
    shown = []
    for secret in SECRETS:
        redacted = redact_credentials(None, "", json.dumps({"event": f"sent {secret}, failed"}))
        hidden = secret.removeprefix("https://x.example/")[-9:] not in redacted
        if "[secret]" not in redacted or not hidden or not json.loads(redacted)["event"].endswith(", failed"):
            shown.append(secret)
    assert shown == []


def test_other_text_stays() -> None:
    texts = ["key_0123456789abcdef", "req_0123456789", "the key is bearer", "a task-force", "sk-1"]
    assert [redact_credentials(None, "", text) for text in texts] == texts


def test_credentials_are_redacted_wherever_they_are() -> None:
    calls = [
        "log.info('x', value=SECRET)",
        "log.info('x', value=[{'deep': (SECRET,)}])",
        "log.info('x', value=ValueError(SECRET))",
        "log.info('x', value=SECRET.encode())",
        "log.info('x', **{SECRET: 1})",
        "plain.info('x %s', SECRET)",
        "log.error('x', exc_info=ValueError(SECRET))",
        "plain.error('x', exc_info=ValueError(SECRET))",
    ]
    lines = log_lines("; ".join(["SECRET = 'sk-canary' + '-0123456789'", *calls]))
    texts = [json.dumps(line) for line in lines]
    shown = [call for call, text in zip(calls, texts, strict=True) if "canary" in text or "[secret]" not in text]
    assert shown == []


@pytest.mark.parametrize("name", ["log", "plain"])
def test_tracebacks_have_no_local_variables(name: str) -> None:
    code = f"""
def paint(prompt):
    raise RuntimeError("no paint")
try:
    paint("a canary")
except RuntimeError:
    {name}.exception("failed")
"""
    (line,) = log_lines(code)
    (exception,) = line["exception"]
    assert (exception["exc_type"], exception["exc_value"]) == ("RuntimeError", "no paint")
    assert exception["frames"][-1]["name"] == "paint"
    assert "canary" not in json.dumps(line)


# -------------------------------------------------------------------------------------------------------- lines to read


def test_a_terminal_gets_coloured_lines_and_everything_else_json() -> None:
    code = "log.warning('disk full', request_id='req_1')"
    coloured = written_to_terminal(code, "auto")
    assert "\033[" in coloured
    assert "disk full" in coloured
    assert "{" not in coloured
    assert "\033[" not in written_to_terminal(code, "text", NO_COLOR="1")
    assert written_to_terminal(code, "json").startswith("{")
    assert written(code, log_format="auto").startswith("{")
    text = written(code, log_format="text")
    assert text[8:] == " [warning  ] disk full request_id=req_1\n"


def test_lines_to_read_hide_what_lines_of_json_hide() -> None:
    code = """
SECRET = 'sk-canary' + '-0123456789'
def paint(prompt):
    raise RuntimeError(SECRET)
try:
    paint("a prompt")
except RuntimeError:
    log.exception("failed", value=SECRET)
    plain.exception("failed")
log.info("two" + chr(10) + "lines", value=chr(27) + "[2J" + chr(10) + "forged")
"""
    text = written(code, log_format="text")
    assert text.count("RuntimeError: [secret]") == 2
    assert "canary" not in text
    assert "a prompt" not in text.replace('paint("a prompt")', "")
    assert text.splitlines()[-1][8:] == " [info     ] two\\nlines value=\\x1b[2J\\nforged"
