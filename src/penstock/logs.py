"""Write logs as lines of JSON, without anything that looks like a credential."""

import logging
import re
import sys
from typing import Any

import structlog
from structlog.tracebacks import ExceptionDictTransformer

# A second line of defence: no code should log a credential in the first place.
_SECRETS = re.compile(r"(?:\b(?:pk_|whsec_|sk-|r8_)|(?i:bearer )|sig=|key=)[A-Za-z0-9_\-.+/=]{6,}")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_HANDLER = "penstock"


def configure_logs(level: str) -> None:
    """Write each event as one line of JSON to stderr: from structlog, and from the logging of libraries.

    Raises ValueError for an unknown level.
    """
    if level not in _LEVELS:
        raise ValueError(f"log_level must be one of {', '.join(_LEVELS)}")
    collect: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        # Not the local variables of a frame: they may be prompts or credentials.
        structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
    ]
    render: list[structlog.typing.Processor] = [structlog.processors.JSONRenderer(), redact_credentials]
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


def redact_credentials(logger: Any, method: str, line: Any) -> str:
    """The finished line with `[secret]` in place of everything that looks like a credential."""
    return _SECRETS.sub("[secret]", str(line))
