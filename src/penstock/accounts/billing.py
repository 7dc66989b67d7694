"""Quote, hold, settle, void; balances; double entry."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from math import ceil
from typing import Any

import msgspec

from penstock.errors import InsufficientBalance
from penstock.providers.spec import Model, Price
from penstock.schema import Component, Quote, Request
from penstock.store.base import Row, Store, Transaction
from penstock.upstream import translate
from penstock.values import ZERO, Nanos, dollars, nanos, new_id

_TOKENS_PER_PICTURE = 3000
FUNDING, REVENUE, LOSS, PROVIDERS = "funding", "revenue", "platform_loss", "providers"


def available(org_id: str) -> str:
    return f"{org_id}:available"


def held(org_id: str) -> str:
    return f"{org_id}:held"


# -------------------------------------------------------------------------------------------------------------- prices


def snapshot_prices(prices: Iterable[Price]) -> tuple[dict[str, Any], ...]:
    """Price rows as plain values, to be kept with what was promised at them."""
    return tuple(msgspec.to_builtins(price) for price in prices)


def restore_prices(rows: Iterable[Mapping[str, Any]]) -> tuple[Price, ...]:
    # `most` was the name of `max_tokens` in plans that earlier versions stored.
    return tuple(Price(**{"max_tokens" if name == "most" else name: row[name] for name in row}) for row in rows)


def matching(prices: Sequence[Price], values: Mapping[str, Any]) -> Price | None:
    """The first row whose conditions the request meets."""
    return next((row for row in prices if all(values.get(name) == one for name, one in row.when.items())), None)


def price_facts(model: Model, request: Request) -> dict[str, Any]:
    """What conditions of price rows may look at: the caller's wishes, and what the model makes of them."""
    facts = {**request.extras, **request.values}
    facts |= {f"sent.{name}": value for name, value in translate.told(model, request).items()}
    if frame := request.frame:
        facts["size"] = frame.size
        facts["tier"] = _tier(min(frame.scaled(720).sides))
        facts["resolution"] = frame.resolution or facts["tier"]
    facts["references"] = bool(request.inputs)
    return facts


def _tier(short_side: int) -> str:
    limits = ((500, "480p"), (620, "540p"), (800, "720p"), (1200, "1080p"), (1500, "1440p"))
    return next((name for limit, name in limits if short_side <= limit), "2160p")


def component(usd: str, metric: str, quantity: Decimal, *, is_input: bool = False) -> Component:
    return Component(
        type="input" if is_input else "output",
        metric=metric,
        quantity=_plain(quantity),
        billable_quantity=_plain(quantity),
        unit_usd=usd,
        total=nanos(Decimal(usd) * quantity),
    )


def _plain(quantity: Decimal) -> float:
    return int(quantity) if quantity == quantity.to_integral_value() else float(quantity)


def total(components: Iterable[Component]) -> Quote:
    lines = tuple(components)
    return Quote(components=lines, total=Nanos(sum(line.total for line in lines)))


def quote(model: Model, request: Request, prices: Sequence[Price] | None = None) -> Quote:
    """The ceiling for an image or video request; equals the charge whenever the price is known beforehand."""
    facts = price_facts(model, request)
    price = matching(model.prices if prices is None else prices, facts)
    if price is None:
        return Quote(components=())
    outputs = Decimal(request.n)
    if price.unit == "second":
        outputs *= asked_seconds(model, request)
    elif price.unit in ("megapixel", "started_megapixel"):
        outputs *= _megapixels(price, _asked_pixels(model, request))
    elif price.unit == "token":
        outputs *= price.max_tokens
    lines = [component(price.usd, price.unit, outputs)]
    if Decimal(price.each_usd):
        lines.append(component(price.each_usd, "output", Decimal(request.n)))
    if Decimal(price.input_usd):
        metric = "image" if price.unit in ("image", "second", "call") else price.unit
        calls = -(-request.n // model.op.native_n)  # each of them is given everything
        lines.append(component(price.input_usd, metric, _inputs(price, request) * calls, is_input=True))
    return total(lines)


def _inputs(price: Price, request: Request) -> Decimal:
    """What goes in: pictures, their megapixels or, where tokens are counted, as many as text and pictures can at most
    be cut into.
    """
    pictures = len(request.inputs)
    if price.unit in ("megapixel", "started_megapixel"):
        return sum((_megapixels(price, one.width * one.height) for one in request.inputs), Decimal(0))
    if price.unit != "token":
        return Decimal(pictures)
    return Decimal(len(str(request.values.get("prompt", "")).encode()) + pictures * _TOKENS_PER_PICTURE)


def asked_seconds(model: Model, request: Request) -> Decimal:
    """How long a video will be: what was asked for, in the model's own steps."""
    row = model.op.param("seconds")
    asked = request.seconds if request.seconds is not None else (row.default if row else None)
    said = row.convert(asked) if row and row.convert and asked is not None else asked
    return _number(said) or _number(asked) or Decimal(1)


def _number(value: Any) -> Decimal | None:
    """`5`, `5.0`, `"5s"` as a number; what is not one (a frame count in a nest) is left to the caller's own word."""
    try:
        return Decimal(str(value).rstrip("s"))
    except ArithmeticError:
        return None


def _megapixels(price: Price, pixels: int) -> Decimal:
    return Decimal(pixels) / 1_000_000 if price.unit == "megapixel" else Decimal(-(-pixels // 2**20))


def _asked_pixels(model: Model, request: Request) -> int:
    if request.task == "upscale":
        row = model.op.param("scale_factor")
        factor = Decimal(str(request.values.get("scale_factor") or (row.default if row else None) or 2))
        area = sum(one.width * one.height for one in request.inputs[:1])
        return ceil(area * factor * factor)
    row, frame = model.op.param("frame"), request.frame
    fitted = (
        row.convert(frame) if row and row.convert and frame and len(row.to) == 2 else None
    )  # as the model will make it
    width, height = fitted if fitted else frame.scaled(1024).sides if frame else (1024, 1024)
    return int(width * height)


def charge(
    model: Model,
    prices: Sequence[Price],
    request: Request,
    outputs: int,
    *,
    seconds: Decimal | None = None,
    pixels: int = 0,
    usage: Mapping[str, int] | None = None,
) -> Decimal:
    """The cost in dollars of what was delivered, at the prices of acceptance; still to be rounded."""
    price = matching(prices, price_facts(model, request))
    if price is None:
        return Decimal(0)
    quantity = Decimal(outputs)
    if price.unit == "second":
        quantity *= seconds if seconds is not None else Decimal(str(request.seconds or 1))
    elif price.unit == "megapixel":
        quantity = _megapixels(price, pixels)
    elif price.unit == "started_megapixel":
        quantity *= _megapixels(price, -(-pixels // max(outputs, 1)))
    elif price.unit == "token":
        quantity = Decimal((usage or {}).get("output", price.max_tokens * outputs))
    cost = Decimal(price.usd) * quantity + Decimal(price.each_usd) * outputs
    cost += sum((Decimal(usd) * (usage or {}).get(name, 0) for name, usd in price.other_usd.items()), Decimal(0))
    reported = (usage or {}).get("input") if price.unit == "token" else None
    return cost + Decimal(price.input_usd) * (_inputs(price, request) if reported is None else reported)


# -------------------------------------------------------------------------------------------------------------- ledger


async def add_credit(tx: Transaction, org_id: str, amount: Nanos, at_ms: int, note: str) -> None:
    await tx.run("add_credit", org_id=org_id, amount=amount)
    ref = new_id("crd", at_ms)
    await _move(tx, _transfer(org_id, ref, "credit", FUNDING, available(org_id), amount, at_ms, note=note))


async def hold(
    tx: Transaction, org_id: str, request_id: str, amount: Nanos, at_ms: int, *, reserved: Nanos = ZERO
) -> None:
    """Check and reserve in one statement: whoever comes second sees what the first left. What is `reserved` in this
    process's memory is left alone.
    """
    if amount and not await tx.run("hold_amount", org_id=org_id, amount=amount, reserved=reserved):
        left = await tx.one("get_balance", org_id=org_id)
        raise insufficient(amount, Nanos(left["available"] if left else 0))
    await _move(tx, _transfer(org_id, request_id, "hold", available(org_id), held(org_id), amount, at_ms))


def insufficient(amount: Nanos, left: Nanos) -> InsufficientBalance:
    words = f"This request may cost up to {dollars(amount):f} USD and {dollars(left):f} USD are available."
    return InsufficientBalance(words, should_retry=False)


async def capture(tx: Transaction, org_id: str, request_id: str, held_amount: Nanos, cost: Nanos, at_ms: int) -> Nanos:
    """Charge what it cost, never more than was held; what is above is our loss, what is below goes back."""
    charged = min(cost, held_amount)
    rest = Nanos(held_amount - charged)
    await tx.run("settle_hold", org_id=org_id, held=held_amount, charged=charged)
    await _move(tx, _transfer(org_id, request_id, "capture", held(org_id), REVENUE, charged, at_ms, returned=rest))
    if cost > charged:
        await record_loss(tx, org_id, request_id, Nanos(cost - charged), at_ms)
    return charged


async def charge_directly(tx: Transaction, charges: Sequence[tuple[str, str, Nanos]], at_ms: int) -> None:
    """Organization, request and cost of calls whose holds were in memory; each balance is changed once for all."""
    spent: dict[str, int] = defaultdict(int)
    for org_id, _, cost in charges:
        spent[org_id] += cost
    for org_id, amount in spent.items():
        await tx.run("spend_amount", org_id=org_id, amount=amount)
    accounts = {org_id: available(org_id) for org_id in spent}
    moves = [
        _transfer(org_id, request_id, "capture", accounts[org_id], REVENUE, cost, at_ms)
        for org_id, request_id, cost in charges
    ]
    await tx.run_many("add_transfer", moves)


async def release(tx: Transaction, org_id: str, request_id: str, held_amount: Nanos, at_ms: int) -> None:
    await tx.run("settle_hold", org_id=org_id, held=held_amount, charged=ZERO)
    await _move(tx, _transfer(org_id, request_id, "release", held(org_id), available(org_id), held_amount, at_ms))


async def record_loss(tx: Transaction, org_id: str, request_id: str, amount: Nanos, at_ms: int) -> None:
    """What a provider will bill us and no caller pays."""
    await _move(tx, _transfer(org_id, request_id, "loss", LOSS, PROVIDERS, amount, at_ms))


async def _move(tx: Transaction, transfer: Row) -> None:
    await tx.run("add_transfer", **transfer)


def _transfer(
    org_id: str,
    ref: str,
    kind: str,
    source: str,
    target: str,
    amount: Nanos,
    at_ms: int,
    *,
    returned: Nanos = ZERO,
    note: str | None = None,
) -> Row:
    return {
        "ref": ref,
        "step": "end" if kind in ("capture", "release") else kind,
        "kind": kind,
        "org_id": org_id,
        "source": source,
        "target": target,
        "amount": amount,
        "returned": returned,
        "created_at_ms": at_ms,
        "note": note,
    }


class Billing:
    """Balances, for those who ask."""

    def __init__(self, store: Store, catch_up: Callable[[], Awaitable[None]] | None = None) -> None:
        self._store = store
        self._catch_up = catch_up  # books what waits to be booked, so that the balance knows of it

    async def balance(self, org_id: str) -> dict[str, Any]:
        if self._catch_up:
            await self._catch_up()
        row = await self._store.one("get_balance", org_id=org_id)
        assert row is not None, "a caller's organization exists"
        prepaid = row["billing"] == "prepaid"
        amount = dollars(Nanos(row["available"])) if prepaid else None
        return {
            "object": "balance",
            "billing_type": row["billing"],
            "available": {"amount": amount, "currency": "usd"},
        }
