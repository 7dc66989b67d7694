"""Limits are written twice, in the tables and in limits.txt: most descriptions have none, so a slip would not show.

To change a limit, change both; `python -m tests.providers.test_limits` prints those of the tables.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from penstock.fields import number_text
from penstock.providers.spec import RASTER, Model, Param, Provider
from tests.providers.recordings import UNLIKE_IMAGES, known_providers

WRITTEN = Path(__file__).with_name("limits.txt")
PROVIDERS = ("bfl", "ideogram", "kling", "recraft", "stability", "together", "xai")


def limits(provider: Provider) -> Iterator[str]:
    """A line for each limit of a field, with the models that have it."""
    models: dict[str, dict[str, None]] = {}
    for model in provider.models:
        for line in _model_limits(model):
            models.setdefault(line, {})[model.id] = None
    for line, names in models.items():
        yield f"{provider.slug} {line} ({' '.join(names)})"


def _model_limits(model: Model) -> Iterator[str]:
    for row in model.op.params if model.op.task not in UNLIKE_IMAGES else ():
        words = list(_words(row)) if row is not RASTER and row.handling not in ("fixed", "ignored", "refused") else []
        if words:
            yield f"{model.op.task} {row.name}: {', '.join(words)}"


def _words(row: Param) -> Iterator[str]:
    if row.required:
        yield "required"
    if row.one_of:
        yield "one of " + " ".join(map(str, row.one_of))
    named = {
        "from": row.low,
        "up to": row.high,
        "characters up to": row.max_length,
        "items from": row.min_items or None,
        "items up to": row.max_items,
        "bytes up to": row.max_bytes,
        "input seconds from": row.min_seconds or None,
        "input seconds up to": row.max_seconds,
    }
    yield from (f"{word} {number_text(limit)}" for word, limit in named.items() if limit is not None)


def all_limits() -> list[str]:
    return [line for slug in PROVIDERS for line in limits(known_providers()[slug])]


def test_tables_have_the_limits_that_are_written_down() -> None:
    written, found = WRITTEN.read_text().splitlines(), all_limits()
    missing = [f"- {line}" for line in written if line not in found]
    assert [*missing, *(f"+ {line}" for line in found if line not in written)] == []


if __name__ == "__main__":
    sys.stdout.write("\n".join([*all_limits(), ""]))
