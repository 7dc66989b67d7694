"""Say what to install when an extra of the package is needed and missing."""

from collections.abc import Mapping
from importlib.util import find_spec

# The libraries of each extra of pyproject.toml, by the names under which they are imported.
LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "atelier": ("av",),
    "bedrock": ("botocore",),
    "mcp": ("mcp",),
    "postgres": ("psycopg", "psycopg_pool", "procrastinate"),
    "s3": ("obstore",),
}


class ExtraMissing(RuntimeError):
    """Something was asked for that needs an extra; the message has the command that installs it."""


def check_extra(extra: str, what: str) -> None:
    """Raise ExtraMissing unless the libraries of an extra are installed; `what` needs them."""
    if any(find_spec(library) is None for library in LIBRARIES[extra]):
        raise ExtraMissing(f"{what} needs an extra: pip install 'penstock[{extra}]'")
