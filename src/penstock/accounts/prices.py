"""Compute what a request may cost at most and what its outputs did cost."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from math import ceil, prod
from typing import Any, NamedTuple

import msgspec

from penstock.providers.derive.resolutions import resolution_side
from penstock.providers.prices import SENT
from penstock.providers.spec import Model, Param, Price
from penstock.schema import Component, CostLine, Quote, Request
from penstock.upstream import translate
from penstock.values import EDIT_VIDEO, INPUT_VIDEOS, ZERO, Frame, Nanos, nanos, nanos_up

_DEFAULT_PIXELS = (1024, 1024)
_USUAL_PIXELS_MAX = 1536 * 1024  # of an image
_DEFAULT_SCALE_FACTOR = 2
_UNSTATED_SECONDS = 10  # of a video whose length neither the caller nor the model's table says
_LONGEST_SOUND_SECONDS = 600  # that a model may make whose length is its own choice
_FRAMES_PER_SECOND = 30  # of a video whose frames nobody has counted
_NAMED_SOUND_SECONDS = 60
_SIDES = re.compile(r"(\d+)[x*](\d+)")  # as providers take a size in one text
_TIERS = ((500, "480p"), (620, "540p"), (800, "720p"), (1200, "1080p"), (1500, "1440p"))


def quote(model: Model, request: Request) -> Quote:
    """Return the highest possible cost of an image, video or sound request, at the model's prices.

    It equals the actual cost where the price does not depend on the result. Without a matching price it is zero.
    """
    return quote_of(_highest_lines(model, request))


def highest_cost(model: Model, request: Request) -> Nanos:
    """Return the total of `quote`."""
    return Nanos(sum([nanos_up(line.cost_usd) for line in _highest_lines(model, request)]))


def _highest_lines(model: Model, request: Request) -> "list[Line]":
    calls = -(-request.n // model.op.native_n)
    return _lines(_price(model, request), _Amounts(model, request, outputs=request.n, calls=calls, is_quote=True))


def actual_lines(
    model: Model,
    request: Request,
    outputs: int,
    *,
    pixels: int | None = None,
    usage: Mapping[str, int | float] | None = None,
) -> "tuple[Line, ...]":
    """Return the cost, not yet rounded, of the outputs of one call to a provider.

    `model` has the prices of the moment at which the request was accepted, `pixels` counts the pixels of all outputs
    together, and `usage` is what the provider reported. An amount that is not known is taken as requested.
    """
    price = _price(model, request)
    return tuple(_lines(price, _Amounts(model, request, outputs, pixels=pixels, usage=usage or {})))


def is_callers_risk(model: Model, request: Request) -> bool:
    """Return whether the price is for the time of a machine that runs what the caller chose: then the time counts,
    whether or not the outputs come.
    """
    price = _price(model, request)
    return price is not None and price.unit == "compute_second"


def failed_cost(model: Model, request: Request | None, cost_usd: str | None, usage: Mapping[str, int | float]) -> Nanos:
    """Return what a provider reports that it bills for a failed or cancelled job: a sum, or units of its price.
    Without the request, which may be purged, its dearest price counts.
    """
    if cost_usd is not None:
        return nanos(Decimal(cost_usd))
    if "billed" not in usage:
        return ZERO
    prices = model.prices if request is None else (_price(model, request),)
    units = [Decimal(price.usd) for price in prices if price is not None and price.takes_reported_units]
    return nanos_up(max(units, default=Decimal(0)) * Decimal(str(usage["billed"])))


# ----------------------------------------------------------------------------------------------------------- price rows


def snapshot_prices(prices: Iterable[Price]) -> tuple[dict[str, Any], ...]:
    """Return price rows as plain values, to be stored with a request that is accepted at these prices."""
    return tuple(msgspec.to_builtins(price) for price in prices)


def restore_prices(rows: Iterable[Mapping[str, Any]]) -> tuple[Price, ...]:
    """Return stored price rows. Fields that other versions store and this one does not have are left out."""
    return tuple(msgspec.convert(row, Price) for row in rows)


def _price(model: Model, request: Request) -> Price | None:
    """Return the price row of a request. Most models have one without conditions, which need not be compared."""
    first = next(iter(model.prices), None)
    if first is None or not (first.when or first.above):
        return first
    return matching_price(model.prices, price_facts(model, request))


def matching_price(prices: Sequence[Price], facts: Mapping[str, Any]) -> Price | None:
    """Return the first row whose conditions all hold."""
    for price in prices:
        is_above = not price.above or facts.get("pixels", 0) > price.above
        if is_above and all(facts.get(name) == value for name, value in price.when.items()):
            return price
    return None


def price_facts(model: Model, request: Request) -> dict[str, Any]:
    """Return what conditions of price rows may name: the caller's values, and `sent.*`, the model's fields.

    An extra field counts only under a name that nothing else here has: it cannot pass for what is computed or sent.
    """
    frame = request.frame
    facts = {name: value for name, value in request.extras.items() if not name.startswith(SENT)} | request.values
    facts |= {f"{SENT}{name}": value for name, value in translate.sent_values(model, request).items()}
    facts["size"] = frame.size if frame else None
    facts["tier"] = _tier(min(frame.scaled(720).sides)) if frame else None
    facts["resolution"] = frame.resolution or facts["tier"] if frame else None
    facts["references"] = bool(request.inputs)
    facts["input_video"] = any(item.role in INPUT_VIDEOS for item in request.inputs)
    facts["pixels"] = _requested_pixels(model, request)  # of one output
    facts["large"] = facts["pixels"] > _USUAL_PIXELS_MAX
    return facts


def _tier(short_side: int) -> str:
    return next((name for limit, name in _TIERS if short_side <= limit), "2160p")


# ---------------------------------------------------------------------------------------------------------------- lines


REPORTED = "reported"


class Line(NamedTuple):
    """A quantity at a price in dollars per unit."""

    usd: str
    metric: str
    quantity: Decimal
    is_input: bool = False

    @property
    def cost_usd(self) -> Decimal:
        return Decimal(self.usd) * self.quantity


def reported_line(usd: str) -> Line:
    """Return the line for a sum that the provider reports."""
    return Line(usd, REPORTED, Decimal(1))


def cost_lines(lines: Iterable[Line], cost: Nanos) -> tuple[CostLine, ...]:
    """Return lines as they are stored with a request: equal ones together, rounded so that they add up to the cost."""
    quantities: dict[tuple[str, str], Decimal] = {}
    for line in lines:
        name = f"input_{line.metric}" if line.is_input else line.metric
        key = (name, line.usd)
        quantities[key] = quantities.get(key, Decimal(0)) + line.quantity
    rest = cost
    found: list[CostLine] = []
    for index, ((metric, usd), quantity) in enumerate(quantities.items(), 1):
        amount = rest if index == len(quantities) else nanos(Decimal(usd) * quantity)
        rest = Nanos(rest - amount)
        found.append(CostLine(metric, _plain(quantity), None if metric == REPORTED else usd, amount))
    return tuple(found)


def quote_of(lines: Iterable[Line]) -> Quote:
    """Return the lines as a quote, each rounded up to nano-dollars: what is charged is rounded once, and never more."""
    components = tuple(_component(line) for line in lines)
    return Quote(components=components, total=Nanos(sum(part.total for part in components)))


def _component(line: Line) -> Component:
    quantity = _plain(line.quantity)
    return Component(
        type="input" if line.is_input else "output",
        metric=line.metric,
        quantity=quantity,
        billable_quantity=quantity,
        unit_usd=line.usd,
        total=nanos_up(line.cost_usd),
    )


def _plain(quantity: Decimal) -> int | float:
    return int(quantity) if quantity == quantity.to_integral_value() else float(quantity)


def _lines(price: Price | None, amounts: "_Amounts") -> list[Line]:
    """Return everything that a price row charges for; nothing without a row."""
    if price is None:
        return []
    lines = [Line(price.usd, price.unit, amounts.output_quantity(price))]
    if Decimal(price.each_usd):
        lines.append(Line(price.each_usd, "output", Decimal(amounts.outputs)))
    if Decimal(price.input_usd):
        metric = "image" if price.unit in ("image", "second", "call") else price.unit
        lines.append(Line(price.input_usd, metric, amounts.input_quantity(price), is_input=True))
    if Decimal(price.prompt_usd):
        lines.append(Line(price.prompt_usd, "token", Decimal(amounts.prompt_tokens), is_input=True))
    for name, usd in price.other_usd.items():
        if count := amounts.usage.get(name):
            lines.append(Line(usd, name, Decimal(str(count))))
    return lines


# -------------------------------------------------------------------------------------------------------------- amounts


class _Amounts(msgspec.Struct, frozen=True):
    """What a price is multiplied with: measured and reported amounts, and requested ones where those are missing."""

    model: Model
    request: Request
    outputs: int
    calls: int = 1  # to the provider; each is sent all inputs
    pixels: int | None = None  # of all outputs
    usage: Mapping[str, int | float] = msgspec.field(default_factory=dict)
    is_quote: bool = False  # the most that may be billed

    def output_quantity(self, price: Price) -> Decimal:
        """Return how many units of the price the outputs are, or how many the provider says they are."""
        billed = self.usage.get("billed")
        if billed is not None and price.takes_reported_units:
            return Decimal(str(billed)) * Decimal(price.billed_size)
        quantity = self._expected_quantity(price)
        return max(quantity * Decimal(price.ceiling), self._least_quantity(price)) if self.is_quote else quantity

    def _least_quantity(self, price: Price) -> Decimal:
        """Return how many units are held at least, whatever the request asks for."""
        least = Decimal(price.least_usd)
        if Decimal(price.least_second_usd):
            least += Decimal(price.least_second_usd) * _requested_seconds(self.model, self.request)
        usd = Decimal(price.usd)
        return Decimal(ceil(self.outputs * least / usd)) if usd and least else Decimal(0)

    def _expected_quantity(self, price: Price) -> Decimal:
        if price.unit == "compute_second":
            return Decimal(self.calls * price.max_seconds)
        if price.unit == "second":
            return self.outputs * self._seconds()
        if price.unit == "minute_started":
            return Decimal(self.outputs * ceil(self._seconds() / 60))
        if price.unit == "megapixel_second":
            return self._seconds() * self._pixels() / 1_000_000
        if price.unit == "video_megapixel":
            return Decimal(ceil(self._frames() * self._pixels() / 1_000_000))
        if price.unit == "frame":
            return Decimal(self.outputs * sum(item.frames for item in self.request.inputs))
        if price.unit == "megapixel":
            return _megapixels(price, self._pixels())
        if price.unit == "started_megapixel":
            return self.outputs * _megapixels(price, -(-self._pixels() // max(self.outputs, 1)))
        return self._text_quantity(price)

    def _text_quantity(self, price: Price) -> Decimal:
        if price.unit == "character":
            return Decimal(self.outputs * self._characters)
        if price.unit == "token":
            partial = self.request.partial_images * (self.model.op.partial_image_tokens or 0)
            return Decimal(str(self.usage.get("output", price.max_tokens * self.outputs + partial)))
        return Decimal(self.outputs)

    def input_quantity(self, price: Price) -> Decimal:
        """Return how many units the inputs are: images, megapixels or tokens. Unreported tokens count as the most
        that the prompt and the images can be.
        """
        images = self.request.inputs
        if price.unit == "token":
            most = self.prompt_tokens + self.calls * len(images) * price.max_input_tokens
            return Decimal(str(self.usage.get("input", most)))
        if price.unit in ("megapixel", "started_megapixel"):
            return self.calls * sum((_megapixels(price, image.width * image.height) for image in images), Decimal(0))
        return Decimal(self.calls * len(images))

    @property
    def prompt_tokens(self) -> int:
        """The most tokens that the texts can be in all calls: no tokenizer makes more than one of a byte. An extra
        field may be an instruction beside the prompt.
        """
        texts = [str(self.request.values.get(name) or "").encode() for name in ("prompt", "negative_prompt")]
        extras = msgspec.json.encode(self.request.extras) if self.request.extras else b""
        return self.calls * (sum(map(len, texts)) + len(extras))

    @property
    def _characters(self) -> int:
        """The most that a text to be spoken can have; an extra field may be a text as well."""
        texts = [str(self.request.values.get(name) or "") for name in ("prompt", "lyrics")]
        extras = msgspec.json.encode(self.request.extras).decode() if self.request.extras else ""
        return sum(map(len, [*texts, extras]))

    def _seconds(self) -> Decimal:
        reported = self.usage.get("second")
        requested = _requested_seconds(self.model, self.request)
        if reported is not None:  # encoders add a little at the end of a sound, which nobody has asked for
            return min(Decimal(str(reported)), requested) if self.request.task == "sound" else Decimal(str(reported))
        return max(requested, _named_sound_seconds(self.request)) if self.is_quote else requested

    def _frames(self) -> Decimal:
        """Return how many frames one output has: as many as a video that is edited, or as usual for its length."""
        counted = sum(item.frames for item in self.request.inputs if item.role == EDIT_VIDEO)
        return Decimal(counted) or self._seconds() * _FRAMES_PER_SECOND

    def _pixels(self) -> int:
        if self.pixels is not None:
            return self.pixels
        requested = _requested_pixels(self.model, self.request)
        return self.outputs * (max(requested, self._unstated_pixels()) if self.is_quote else requested)

    def _unstated_pixels(self) -> int:
        """Return how many pixels an image may have whose sides are not sent to the model, whatever the caller wrote: as
        many as usual, as one that is edited, or as a resolution that is sent by its name.
        """
        row, frame = self.model.op.param("frame"), self.request.frame
        if self.request.task not in ("image", "edit"):
            return 0
        sent: tuple[Any, ...] = ()
        if frame and row and row.convert and len(row.to) >= 2:
            sent = row.convert(frame)
        if len(sent) == 2 and isinstance(sent[0], int):
            return 0
        sides = [resolution_side(name, "image") or 0 for name in sent]
        inputs = (image.width * image.height for image in self.request.inputs)
        return max([prod(_DEFAULT_PIXELS), *inputs, *(ceil(side * side) for side in sides)])


def _megapixels(price: Price, pixels: int) -> Decimal:
    return Decimal(pixels) / 1_000_000 if price.unit == "megapixel" else Decimal(-(-pixels // 2**20))


def _requested_seconds(model: Model, request: Request) -> Decimal:
    """Return how long a video or a sound will be: as long as a video that is edited, or the requested duration as the
    model's table converts it. What the caller wrote does not count for a model that is not sent it.
    """
    for item in request.inputs:
        if item.role == EDIT_VIDEO:
            return Decimal(str(item.seconds))
    row = model.op.param("seconds")
    if row is None or not row.to:
        usual = _LONGEST_SOUND_SECONDS if request.task == "sound" else _UNSTATED_SECONDS
        return _number(row.default if row else None) or Decimal(usual)
    requested = request.seconds if request.seconds is not None else row.default
    converted = row.convert(requested) if row.convert and requested is not None else requested
    seconds = _number(converted) or _number(requested) or _number(row.high) or Decimal(_UNSTATED_SECONDS)
    if row.high is not None and seconds > row.high:  # it is sent in another unit, such as milliseconds
        seconds = _number(requested) or _number(row.high) or seconds
    return max(seconds, Decimal(str(row.min_seconds)))


def _named_sound_seconds(request: Request) -> Decimal:
    """Return how long a sound may be whose URL the caller named: the video may become as long."""
    has_sound = any("audio" in name and isinstance(value, str) for name, value in request.extras.items())
    return Decimal(_NAMED_SOUND_SECONDS if has_sound else 0)


def _number(value: Any) -> Decimal | None:
    """Return `5`, `5.0` or `"5s"` as a number; None for anything else, such as a count of frames inside an object."""
    try:
        return Decimal(str(value).rstrip("s"))
    except ArithmeticError:
        return None


def _requested_pixels(model: Model, request: Request) -> int:
    """Return how many pixels one output will have, in the size that the model makes."""
    if request.task == "upscale":
        row = model.op.param("scale_factor")
        requested = request.values.get("scale_factor") or (row.default if row else None)
        factor = Decimal(str(requested or _DEFAULT_SCALE_FACTOR))
        area = sum(image.width * image.height for image in request.inputs[:1])
        return ceil(area * factor * factor)
    row = model.op.param("frame")
    frame = request.frame
    if frame is None:
        width, height = _DEFAULT_PIXELS
    else:
        width, height = _sent_sides(row, frame) or frame.scaled(1024).sides
    return int(width * height)


def _sent_sides(row: Param | None, frame: Frame) -> tuple[int, int] | None:
    """Return the width and height that are sent for a frame; None if it is sent by name, or not at all."""
    sent = row.convert(frame) if row and row.convert else None
    if isinstance(sent, str) and (match := _SIDES.fullmatch(sent)):
        return int(match[1]), int(match[2])
    if isinstance(sent, tuple) and len(sent) == 2 and isinstance(sent[0], int):
        return sent
    return None
