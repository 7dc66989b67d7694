"""Logs as lines of JSON: an allow-list of facts, never bodies, prompts or credentials."""

import logging
import re
import sys
from typing import Any

import structlog
from structlog.tracebacks import ExceptionDictTransformer

# A second net under the rule that nobody logs such things in the first place.
_SECRETS = re.compile(r"(?:\b(?:pk_|whsec_|sk-|r8_)|(?i:bearer )|sig=|key=)[A-Za-z0-9_\-.+/=]{6,}")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_HANDLER = "penstock"


def configure_logs(level: str) -> None:
    """One line of JSON an event on stderr, whoever has something to say: our modules or a library's."""
    if level not in _LEVELS:
        raise ValueError(f"log_level must be one of {', '.join(_LEVELS)}")
    gathered: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        # Variables of a frame are prompts and credentials.
        structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
    ]
    written: list[structlog.typing.Processor] = [structlog.processors.JSONRenderer(), cross_out]
    structlog.configure(
        processors=[*gathered, *written],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name(_HANDLER)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=gathered,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *written],
        )
    )
    for earlier in [one for one in logging.root.handlers if one.get_name() == _HANDLER]:
        logging.root.removeHandler(earlier)
    logging.root.addHandler(handler)
    logging.root.setLevel(_LEVELS[level])


def cross_out(logger: Any, method: str, line: Any) -> str:
    """The finished line without whatever looks like a credential, however deep in it."""
    return _SECRETS.sub("[secret]", str(line))
