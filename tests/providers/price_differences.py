"""Compare our prices and shutdown dates with litellm's table, which others keep; run it by hand, with its path.

    .venv/bin/python -m tests.providers.price_differences model_prices_and_context_window.json

It prints every figure that differs by more than a percent, every date that differs, and how many were compared. Our
prices are those of today: announced ones are not in litellm's table yet. litellm is a witness, not an authority: look
each difference up at the provider before you change something.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.providers import discover
from penstock.providers.spec import Model, Price, Provider, prices_in_force

# How litellm's names of models begin, where it is not the slug of our provider. For Alibaba, qwencloud is Singapore.
PREFIXES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("",),
    "azure": ("azure/", "azure_ai/"),
    "bedrock": ("",),
    "bfl": ("black_forest_labs/",),
    "dashscope": ("qwencloud/",),
    "deepseek": ("deepseek/", ""),
    "fal": ("fal_ai/",),
    "fireworks": ("fireworks_ai/",),
    "google": ("gemini/",),
    "openai": ("",),
    "runway": ("runwayml/",),
    "together": ("together_ai/",),
    "vertex": ("vertex_ai/",),
}
TOLERANCE = 0.01

Row = Mapping[str, Any]
Figure = tuple[str, float, float]  # what it is the price of, ours and theirs


def lines(table: Mapping[str, Row], providers: Iterable[Provider], today: str) -> Iterator[str]:
    figures = dates = 0
    for provider in providers:
        for model in provider.models:
            subject = f"{provider.slug} {model.upstream} {model.op.task}"
            row = _find(table, provider, model)
            for name, ours, theirs in _figures(model, prices_in_force(model.prices, today), row):
                figures += 1
                if abs(ours - theirs) > TOLERANCE * max(ours, theirs):
                    yield f"{subject}: {name} {ours:g}, litellm {theirs:g}"
            if date := row.get("deprecation_date"):
                dates += 1
                if date != model.shutdown_date:
                    yield f"{subject}: shutdown_date {model.shutdown_date or 'not known'}, litellm {date}"
    yield f"{figures} figures and {dates} dates compared"


def _find(table: Mapping[str, Row], provider: Provider, model: Model) -> Row:
    prefixes = PREFIXES.get(provider.slug, (f"{provider.slug}/",))
    return next((table[prefix + model.upstream] for prefix in prefixes if prefix + model.upstream in table), {})


def _figures(model: Model, prices: tuple[Price, ...], row: Row) -> Iterator[Figure]:
    if model.op.task == "chat":
        yield from _chat_figures(prices, row)
    for price in prices:
        conditions = {name.rpartition(".")[2]: value for name, value in price.when.items()}
        resolution = str(conditions.pop("resolution", "")).lower()
        if conditions or price.above or price.unit not in ("image", "second"):
            continue  # litellm has no row for it
        field = f"output_cost_per_{price.unit}" + (f"_{resolution}" if resolution else "")
        if field in row and (resolution or not any(name.startswith(f"{field}_") for name in row)):
            yield field, float(price.usd), row[field]


def _chat_figures(prices: tuple[Price, ...], row: Row) -> Iterator[Figure]:
    for price in prices:
        above = f"_above_{price.above // 1000}k_tokens" if price.above else ""
        ours = {
            f"input_cost_per_token{above}": price.input_usd,
            f"output_cost_per_token{above}": price.usd,
            f"cache_read_input_token_cost{above}": price.other_usd.get("cached"),
        }
        for field, usd in ours.items():
            if usd is not None and field in row:
                yield field, float(usd), row[field]


if __name__ == "__main__":
    found = lines(json.loads(Path(sys.argv[1]).read_text()), discover(), datetime.now(UTC).date().isoformat())
    sys.stdout.writelines(f"{line}\n" for line in found)
