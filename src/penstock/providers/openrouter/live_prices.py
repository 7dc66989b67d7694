"""The most that a model of OpenRouter's lists can cost, which is held; what OpenRouter reports is charged."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from penstock.providers.derive.resolutions import resolution_side
from penstock.providers.live import LiveModel
from penstock.providers.spec import Price, Source, price_list

TOKENS_PER_IMAGE = 10_000  # more than any model uses for one image
TOKENS_PER_INPUT = 3_000
MEGAPIXELS_MAX = 17  # of one image: 4K, square
FRAMES_PER_SECOND = 30
price = price_list(Source("the most of OpenRouter's own list; what is reported is charged"))


def image_prices(live: LiveModel) -> tuple[Price, ...]:
    """The most that one output, one input and a token of the prompt can cost at any of the providers behind
    OpenRouter.
    """
    made = max((_most(line) for line in live.prices if line.get("billable") == "output_image"), default=Decimal(0))
    inputs = ("input_image", "input_reference")
    taken = max((_most(line) for line in live.prices if line.get("billable") in inputs), default=Decimal(0))
    if not made:
        return ()
    texts = [line for line in live.prices if line.get("billable") == "input_text"]
    token = max((_cost(line) for line in texts if line.get("unit") == "token"), default=Decimal(0))
    other = max((_most(line) for line in texts if line.get("unit") != "token"), default=Decimal(0))
    row = price(str(made + other), "image", input_usd=str(taken))
    return (replace(row, prompt_usd=format(token, "f")),)


def _most(line: Mapping[str, Any]) -> Decimal:
    """The most that one image can cost by a line of the list."""
    tokens = TOKENS_PER_IMAGE if line.get("billable") == "output_image" else TOKENS_PER_INPUT
    units = {"image": 1, "request": 1, "megapixel": MEGAPIXELS_MAX, "token": tokens}
    return _cost(line) * units.get(str(line.get("unit")), TOKENS_PER_IMAGE)


def _cost(line: Mapping[str, Any]) -> Decimal:
    return Decimal(str(line["cost_usd"]))


def video_prices(live: LiveModel) -> tuple[Price, ...]:
    """A row for each resolution: the most that a second can cost there, with or without sound."""
    resolutions = live.input["properties"].get("resolution", {}).get("enum", ["1080p"])
    highest_prices = [(name, max(_per_second(live, name), default=Decimal(0))) for name in resolutions]
    if not all(usd for _, usd in highest_prices):
        return ()
    highest = max(usd for _, usd in highest_prices)
    return (*(price(str(usd), resolution=name) for name, usd in highest_prices), price(str(highest)))


def _per_second(live: LiveModel, resolution: str) -> Iterator[Decimal]:
    """Dollars for a second by each line that is for this resolution, or for all."""
    others = {str(name).lower() for name in live.input["properties"].get("resolution", {}).get("enum", ())}
    for line in live.prices:
        sku = str(line["sku"]).lower()
        if any(name in sku for name in others - {resolution.lower()}) and resolution.lower() not in sku:
            continue
        try:
            usd = Decimal(str(line["value"]))
        except InvalidOperation:
            continue
        if "duration_seconds" in sku:
            yield usd
        elif sku.startswith("cents_per") and "second" in sku:
            yield usd / 100
        elif "video_tokens" in sku:
            side = int(resolution_side(resolution) or 1080)
            yield usd * (side * side * 16 // 9) * FRAMES_PER_SECOND / 1024
