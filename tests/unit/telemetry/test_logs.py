"""Each log event is one line, of JSON or to read, from every logger and without credentials."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.telemetry.logs import configure_logs, redact_credentials

# Imports once what logs need. Then each case, a line of JSON with code and a file, runs in a fork with that file as
# stderr: importing takes a quarter of a second, and there are many cases.
FORKING = """
import json, logging, os, structlog, sys
from penstock.telemetry.logs import configure_logs
log, plain = structlog.get_logger(), logging.getLogger("a.library")
for line in sys.stdin:
    code, file, names = json.loads(line)
    if not (pid := os.fork()):
        status = 1
        try:
            os.environ.pop("NO_COLOR", None)
            os.environ |= names
            sys.stderr = open(file, "w")
            exec(code, {"log": log, "plain": plain, "configure_logs": configure_logs})
            sys.stderr.flush()
            status = 0
        finally:
            os._exit(status)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


class Forks:
    """Runs code in processes of its own, and returns what they wrote to stderr."""

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._file = folder / "stderr"

    def written(self, code: str, level: str = "info", log_format: str = "auto") -> str:
        self._run(code, level, log_format, self._file)
        return self._file.read_text()

    def lines(self, code: str, level: str = "info") -> list[dict[str, Any]]:
        """What is written, of which each line must be JSON."""
        return [json.loads(line) for line in self.written(code, level).splitlines()]

    def written_to_terminal(self, code: str, log_format: str, **environ: str) -> str:
        """What is written where stderr is a terminal."""
        main, other = os.openpty()
        with os.fdopen(main, "rb", buffering=0) as terminal, os.fdopen(other, "wb"):
            self._run(code, "info", log_format, Path(os.ttyname(other)), **environ)
            return terminal.read(65536).decode()

    def _run(self, code: str, level: str, log_format: str, file: Path, **environ: str) -> None:
        assert self._process.stdin
        assert self._process.stdout
        code = f"configure_logs({level!r}, {log_format!r})\n{code}"
        print(json.dumps([code, str(file), environ]), file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "0\n", "it failed, or it printed something"


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    command = [sys.executable, "-c", FORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Forks(process, tmp_path_factory.mktemp("logs"))


def test_an_event_is_one_line_with_its_fields(forks: Forks) -> None:
    (line,) = forks.lines("log.info('call ended', status=200, request_id='req_1', path='/a\\nb')")
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "call ended", "level": "info", "status": 200, "request_id": "req_1", "path": "/a\nb"}


def test_libraries_write_the_same_lines(forks: Forks) -> None:
    (line,) = forks.lines("plain.warning('%s is full', 'the disk')")
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "the disk is full", "level": "warning"}


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
@pytest.mark.parametrize("name", ["log", "plain"])
def test_only_the_level_and_above_is_written(forks: Forks, name: str, level: str) -> None:
    levels = ["debug", "info", "warning", "error"]
    lines = forks.lines("; ".join(f"{name}.{other}('x')" for other in levels), level)
    assert [line["level"] for line in lines] == levels[levels.index(level) :]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="log_level must be one of debug, info, warning, error"):
        configure_logs("loud")


def test_configuring_twice_writes_once(forks: Forks) -> None:
    assert len(forks.lines("configure_logs('info'); plain.info('x'); log.info('y')")) == 2


SECRETS = [
    "pk_0123456789abcdef_secret",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "sk-proj-abcdef0123456789",
    "r8_abcdef0123456789",
    "Bearer abcdef.0123-456",
    "bearer abcdef.0123-456",
    "https://x.example/v1?key=AIzaSyA0123456",
    "https://x.example/m/1?exp=1&sig=abcdef0123456789",
    "https://x.example/b/1?se=1&sig=abcdef%2B0123%3D456789%3D",
    "https://x.example/b/1?X-Amz-Expires=1&X-Amz-Signature=abcdef0123456789",
    "https://x.example/b/1?X-Goog-Expires=1&X-Goog-Signature=abcdef0123456789",
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


def test_credentials_are_redacted_wherever_they_are(forks: Forks) -> None:
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
    lines = forks.lines("; ".join(["SECRET = 'sk-canary' + '-0123456789'", *calls]))
    texts = [json.dumps(line) for line in lines]
    shown = [call for call, text in zip(calls, texts, strict=True) if "canary" in text or "[secret]" not in text]
    assert shown == []


@pytest.mark.parametrize("name", ["log", "plain"])
def test_tracebacks_have_no_local_variables(forks: Forks, name: str) -> None:
    code = f"""
def paint(prompt):
    raise RuntimeError("no paint")
try:
    paint("a canary")
except RuntimeError:
    {name}.exception("failed")
"""
    (line,) = forks.lines(code)
    (exception,) = line["exception"]
    assert (exception["exc_type"], exception["exc_value"]) == ("RuntimeError", "no paint")
    assert exception["frames"][-1]["name"] == "paint"
    assert "canary" not in json.dumps(line)


# -------------------------------------------------------------------------------------------------------- lines to read


def test_a_terminal_gets_coloured_lines_and_everything_else_json(forks: Forks) -> None:
    code = "log.warning('disk full', request_id='req_1')"
    coloured = forks.written_to_terminal(code, "auto")
    assert "\033[" in coloured
    assert "disk full" in coloured
    assert "{" not in coloured
    assert "\033[" not in forks.written_to_terminal(code, "text", NO_COLOR="1")
    assert forks.written_to_terminal(code, "json").startswith("{")
    assert forks.written(code, log_format="auto").startswith("{")
    text = forks.written(code, log_format="text")
    assert text[8:] == " [warning  ] disk full request_id=req_1\n"


def test_lines_to_read_hide_what_lines_of_json_hide(forks: Forks) -> None:
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
    text = forks.written(code, log_format="text")
    assert text.count("RuntimeError: [secret]") == 2
    assert "canary" not in text
    assert "a prompt" not in text.replace('paint("a prompt")', "")
    assert text.splitlines()[-1][8:] == " [info     ] two\\nlines value=\\x1b[2J\\nforged"
