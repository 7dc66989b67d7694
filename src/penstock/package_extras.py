"""Say what to install when an extra of the package is needed and missing."""

from importlib.util import find_spec

# The libraries of the extras of pyproject.toml, by the names under which they are imported; not those of `otel`, which
# `trace_export` finds by their entry points.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "atelier": ("av",),
    "bedrock": ("botocore",),
    "media": ("av",),
    "mcp": ("mcp",),
    "provenance": ("c2pa",),
    "oidc": ("jwt",),
    "postgres": ("psycopg", "psycopg_pool", "procrastinate"),
    "s3": ("obstore",),
}


class ExtraMissing(RuntimeError):
    """Something was asked for that needs an extra; the message has the command that installs it."""


def how_to_install(extra: str) -> str:
    """The command that installs an extra. It needs a clone, because Penstock is on no index of packages."""
    return f"pip install '.[{extra}]' in a clone of Penstock"


def extra_with(library: str) -> str:
    """The first extra that has a library."""
    return next(extra for extra, libraries in LIBRARIES.items() if library in libraries)


def has_library(name: str) -> bool:
    """Whether a library is installed, by the name under which it is imported."""
    return find_spec(name) is not None


def has_extra(extra: str) -> bool:
    """Whether the libraries of an extra are installed."""
    return all(map(has_library, LIBRARIES[extra]))


def check_extra(extra: str, what: str) -> None:
    """Raise ExtraMissing unless the libraries of an extra are installed; `what` needs them."""
    if not has_extra(extra):
        raise ExtraMissing(f"{what} needs an extra: {how_to_install(extra)}")
