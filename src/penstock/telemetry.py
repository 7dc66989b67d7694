"""Logs as lines of JSON: an allow-list of facts, never bodies, prompts or credentials."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

# A second net under the rule that nobody logs such things in the first place.
_SECRETS = re.compile(r"(?:\b(?:pk_|whsec_|sk-|r8_)|Bearer |sig=|key=)[A-Za-z0-9_\-.+/=]{6,}")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: str) -> None:
    """One line of JSON an event on stderr."""
    if level not in _LEVELS:
        raise ValueError(f"log_level must be one of {', '.join(_LEVELS)}")
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.dict_tracebacks,
            redact,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def redact(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Cross out what looks like a credential, wherever it is nested."""
    return {name: _redacted(value) for name, value in event.items()}


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return _SECRETS.sub("[secret]", value)
    if isinstance(value, dict):
        return {name: _redacted(one) for name, one in value.items() if name != "locals"}
    return [_redacted(one) for one in value] if isinstance(value, list) else value
