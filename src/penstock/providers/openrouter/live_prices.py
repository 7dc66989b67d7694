"""The most that a model of OpenRouter's lists can cost, which is held; what OpenRouter reports is charged."""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from penstock.providers.derive.resolutions import resolution_side
from penstock.providers.live import LiveModel
from penstock.providers.spec import Price, Source, price_list

TOKENS_PER_IMAGE = 10_000  # more than any model uses for one image
TOKENS_PER_INPUT = 3_000
TOKENS_PER_PROMPT = 8_000
MEGAPIXELS_MAX = 17  # of one image: 4K, square
FRAMES_PER_SECOND = 30
price = price_list(Source("the most of OpenRouter's own list; what is reported is charged"))


def image_prices(live: LiveModel) -> tuple[Price, ...]:
    """The most that one output and one input can cost at any of the providers behind OpenRouter."""
    made = max((_most(line) for line in live.prices if line.get("billable") == "output_image"), default=Decimal(0))
    inputs = ("input_image", "input_reference")
    taken = max((_most(line) for line in live.prices if line.get("billable") in inputs), default=Decimal(0))
    text = max((_most(line) for line in live.prices if line.get("billable") == "input_text"), default=Decimal(0))
    return (price(str(made + text), "image", input_usd=str(taken)),) if made else ()


def _most(line: Mapping[str, Any]) -> Decimal:
    """The most that one image, or the prompt, can cost by a line of the list."""
    billable = str(line.get("billable"))
    tokens = {"output_image": TOKENS_PER_IMAGE, "input_text": TOKENS_PER_PROMPT}.get(billable, TOKENS_PER_INPUT)
    units = {"image": 1, "request": 1, "megapixel": MEGAPIXELS_MAX, "token": tokens}
    return Decimal(str(line["cost_usd"])) * units.get(str(line.get("unit")), TOKENS_PER_IMAGE)


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
