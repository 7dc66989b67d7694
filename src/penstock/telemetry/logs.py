"""Write logs as lines of JSON, or as lines to read, without anything that looks like a credential."""

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from penstock.imaging.confinement import PROTECTIONS

# A second line of defence: no code should log a credential in the first place.
_SECRETS = re.compile(r"(?:\b(?:pk_|whsec_|sk-|r8_)|(?i:bearer )|sig=|[Ss]ignature=|key=)[A-Za-z0-9_\-.+/=%]{6,}")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_HANDLER = "penstock"


Style = Literal["json", "text", "colour"]
DIM = "\033[2m"
RESET = "\033[0m"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def log_style(log_format: str) -> Style:
    """How to write lines to stderr: `auto` is text on a terminal, otherwise JSON. NO_COLOR takes the colours away."""
    is_terminal = sys.stderr.isatty()
    if log_format == "json" or (log_format == "auto" and not is_terminal):
        return "json"
    return "colour" if is_terminal and not os.environ.get("NO_COLOR") else "text"


def configure_logs(level: str, log_format: str = "json", **facts: Any) -> None:
    """Write each event as one line to stderr: from structlog, and from the logging of libraries.

    The `facts` are part of every line. Raises ValueError for an unknown level.
    """
    if level not in _LEVELS:
        raise ValueError(f"log_level must be one of {', '.join(_LEVELS)}")
    style = log_style(log_format)
    collect = [_adding(facts), *(_json_fields() if style == "json" else _text_fields())]
    # Text is made by structlog's own renderer, but with plain tracebacks: the others show local variables.
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(
            colors=style == "colour", exception_formatter=structlog.dev.plain_traceback, pad_event_to=0
        )
    )
    render: list[structlog.typing.Processor] = [renderer, redact_credentials]
    structlog.configure(
        processors=[*collect, *render],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name(_HANDLER)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=collect,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    for earlier in [known for known in logging.root.handlers if known.get_name() == _HANDLER]:
        logging.root.removeHandler(earlier)
    logging.root.addHandler(handler)
    logging.root.setLevel(_LEVELS[level])


def _adding(facts: Mapping[str, Any]) -> structlog.typing.Processor:
    """Adds the same facts to every event."""
    return lambda logger, method, event: {**facts, **event}


def _json_fields() -> list[structlog.typing.Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        # Not the local variables of a frame: they may be prompts or credentials.
        structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
    ]


def _text_fields() -> list[structlog.typing.Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
        _escape_fields,
    ]


def _escape_fields(logger: Any, method: str, fields: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """No text from elsewhere may move the cursor of a terminal or begin a line of its own."""
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = escape_controls(value)
    return fields


def escape_controls(text: str) -> str:
    """The text with control characters written as in Python, such as `\\n`."""
    return _CONTROLS.sub(lambda found: repr(found.group())[1:-1], text)


def redact(text: str) -> str:
    """The text with `[secret]` in place of everything that looks like a credential."""
    return _SECRETS.sub("[secret]", text)


def redact_credentials(logger: Any, method: str, line: Any) -> str:
    """The finished line without credentials."""
    return redact(str(line))


def protections_log() -> Callable[[Sequence[str]], None]:
    """Logs how child processes are confined: once, when the first one starts, and again when that changes."""
    logger = structlog.get_logger()
    logged: set[tuple[str, ...]] = set()

    def report(active: Sequence[str]) -> None:
        if tuple(active) not in logged:
            logged.add(tuple(active))
            missing = [name for name in PROTECTIONS if name not in active]
            write = logger.warning if missing else logger.info
            write("confinement of child processes", active=list(active), missing=missing)

    return report
