"""Money: quoted as a ceiling, held once, settled once, never made and never lost."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.accounts import billing
from penstock.errors import InsufficientBalance, StorageUnavailable
from penstock.providers import compatible
from penstock.providers.spec import Model, Operation, Price, converted
from penstock.schema import Input, Request
from penstock.store.base import ConstraintViolated, Store
from penstock.values import Nanos, nanos, new_id
from tests.databases import Database, database_for

NOW = 1_700_000_000_000


@pytest.fixture
def database(request: pytest.FixtureRequest, dialect: Any) -> Database:
    return database_for(request, dialect)


# --------------------------------------------------------------------------------------------------------------- quotes


def model(price: Price | None, op: Operation = compatible.IMAGE, *more: Price) -> Model:
    return Model(id="m", upstream="m", op=op, prices=(price, *more) if price else ())


def wish(task: str = "image", inputs: int = 0, **values: Any) -> Request:
    pictures = tuple(Input("image", f"med_{n}", "image/png", 1000, 500, 1) for n in range(inputs))
    return Request(task=task, model="m", values={"prompt": "a pear", **values}, inputs=pictures)


def test_a_price_for_each_image() -> None:
    quote = billing.quote(model(Price(unit="image", usd="0.04")), wish(n=3))
    assert quote.total == nanos("0.12")
    assert [(line.type, line.metric, line.quantity, line.total) for line in quote.components] == [
        ("output", "image", 3, nanos("0.12"))
    ]


def test_pictures_that_go_in_may_cost_as_well() -> None:
    quote = billing.quote(model(Price(unit="image", usd="0.04", input_usd="0.01")), wish("edit", inputs=2))
    assert quote.total == nanos("0.06")
    assert [line.type for line in quote.components] == ["output", "input"]


def test_pictures_go_into_every_call() -> None:
    """Where the provider makes one at a time, four outputs are four calls, and each of them is given the picture."""
    priced = Price(unit="image", usd="0.04", input_usd="0.01")
    one_by_one = replace(compatible.EDIT, params=tuple(row for row in compatible.EDIT.params if row.name != "n"))
    request = wish("edit", inputs=1, n=4)
    assert billing.quote(model(priced, one_by_one), request).total == nanos("0.20")
    share = billing.charge(model(priced, one_by_one), (priced,), request, 1)
    assert nanos(4 * share) == nanos("0.20")


def test_a_price_for_each_call() -> None:
    assert billing.quote(model(Price(unit="call", usd="0.5")), wish()).total == nanos("0.5")


def test_a_price_for_each_second_in_the_models_own_steps() -> None:
    """A model that makes 4, 8 or 12 seconds is paid for the 8 it makes when 5 are asked for."""
    steps = converted("seconds", to="seconds", convert=lambda said: f"{8 if said > 4 else 4}s", default=4)
    op = replace(compatible.VIDEO, params=(steps,))
    film = model(Price(unit="second", usd="0.10"), op)
    assert billing.quote(film, wish("video", seconds=5)).total == nanos("0.80")
    assert billing.quote(film, wish("video", seconds=5, n=2)).total == nanos("1.60")
    assert billing.quote(film, wish("video")).total == nanos("0.40"), "the model's own default"


def test_a_price_for_each_megapixel() -> None:
    painted = model(Price(unit="megapixel", usd="0.01"))
    assert billing.quote(painted, wish(size="2000x1000")).total == nanos("0.02")
    assert billing.quote(painted, wish(size="1:1")).total == nanos(Decimal("0.01") * 1024 * 1024 / 1_000_000)


def test_an_upscaler_is_paid_for_what_comes_out() -> None:
    enlarger = model(Price(unit="megapixel", usd="0.01"), compatible.UPSCALE)
    assert billing.quote(enlarger, wish("upscale", inputs=1, scale_factor=4)).total == nanos("0.08")
    assert billing.quote(enlarger, wish("upscale", inputs=1)).total == nanos("0.02")


def test_tokens_are_held_up_to_their_ceiling() -> None:
    counted = model(Price(unit="token", usd="0.00004", input_usd="0.00001", max_tokens=6000))
    quote = billing.quote(counted, wish("edit", inputs=1, n=2, prompt="x" * 100))
    assert quote.total == nanos(Decimal("0.00004") * 12_000 + Decimal("0.00001") * (100 + 3000))
    assert [line.metric for line in quote.components] == ["token", "token"]


def test_no_price_costs_nothing() -> None:
    assert billing.quote(model(None), wish()).total == 0


def test_the_first_row_whose_conditions_are_met() -> None:
    rows = (
        Price(unit="image", usd="0.08", when={"quality": "hd", "size": "1792x1024"}),
        Price(unit="image", usd="0.06", when={"quality": "hd"}),
        Price(unit="image", usd="0.04"),
    )
    painted = model(rows[0], compatible.IMAGE, *rows[1:])
    wishes: list[dict[str, Any]] = [
        {"quality": "hd", "size": "1792x1024"},
        {"quality": "hd"},
        {"quality": "standard"},
        {},
    ]
    totals = [billing.quote(painted, wish(**said)).total for said in wishes]
    assert totals == [nanos(usd) for usd in ("0.08", "0.06", "0.04", "0.04")]


@pytest.mark.parametrize(
    ("values", "tier"),
    [
        ({"size": "1280x720"}, "720p"),
        ({"size": "1920x1080"}, "1080p"),
        ({"size": "16:9"}, "720p"),
        ({"size": "16:9", "resolution": "1080p"}, "1080p"),
        ({"size": "854x480"}, "480p"),
        ({"size": "3840x2160"}, "2160p"),
    ],
)
def test_prices_may_depend_on_the_resolution(values: dict[str, Any], tier: str) -> None:
    assert billing.price_facts(model(None, compatible.VIDEO), wish("video", **values))["resolution"] == tier


# -------------------------------------------------------------------------------------------------------------- charges


def test_what_was_delivered_is_charged() -> None:
    rows = (Price(unit="image", usd="0.04"),)
    assert billing.charge(model(rows[0]), rows, wish(n=4), 3) == Decimal("0.12")


def test_pictures_are_counted_as_pictures_whatever_tokens_are_reported() -> None:
    rows = (Price(unit="image", usd="0.04", input_usd="0.01"),)
    assert billing.charge(
        model(rows[0]), rows, wish("edit", inputs=1), 1, usage={"input": 1000, "output": 5000}
    ) == Decimal("0.05")


def test_reported_tokens_are_charged() -> None:
    rows = (Price(unit="token", usd="0.00004", input_usd="0.00001", max_tokens=6000),)
    assert billing.charge(model(rows[0]), rows, wish(), 1, usage={"input": 50, "output": 1000}) == Decimal("0.0405")
    assert billing.charge(model(rows[0]), rows, wish(), 1, usage={"input": 0, "output": 0}) == 0, "zero is a report"


def test_without_a_report_the_ceiling_is_charged() -> None:
    rows = (Price(unit="token", usd="0.00004", input_usd="0.00001", max_tokens=6000),)
    quoted = billing.quote(model(rows[0]), wish()).total
    assert nanos(billing.charge(model(rows[0]), rows, wish(), 1)) == quoted


def test_real_pixels_are_charged() -> None:
    rows = (Price(unit="megapixel", usd="0.01"),)
    assert billing.charge(model(rows[0]), rows, wish(), 2, pixels=3_000_000) == Decimal("0.03")


def test_a_million_tiny_charges_are_exact() -> None:
    """0.15 millionths of a dollar, a million times: fifteen cents to the last nano."""
    rows = (Price(unit="call", usd="0.00000015"),)
    one = nanos(billing.charge(model(rows[0]), rows, wish(), 1))
    assert one * 1_000_000 == nanos("0.15")
    assert one == 150


prices = st.decimals(min_value=0, max_value=100, places=6).map(str)


@given(
    usd=prices,
    input_usd=prices,
    n=st.integers(1, 10),
    inputs=st.integers(0, 4),
    size=st.sampled_from(("64x64", "16:9")),
)
def test_a_charge_never_exceeds_its_quote(usd: str, input_usd: str, n: int, inputs: int, size: str) -> None:
    """Where all that was asked for is delivered, and nothing else is reported, the two are the same."""
    request = wish("edit", inputs=inputs, n=n, size=size)
    for unit in ("image", "call"):
        price = Price(unit=unit, usd=usd, input_usd=input_usd)
        assert nanos(billing.charge(model(price), (price,), request, n)) == billing.quote(model(price), request).total


def test_prices_survive_being_stored() -> None:
    rows = (
        Price(unit="image", usd="0.04", when={"quality": "hd"}, note="x"),
        Price(unit="token", usd="1", max_tokens=7),
    )
    assert billing.restore_prices(billing.snapshot_prices(rows)) == rows


# ---------------------------------------------------------------------------------------------------------------- books


async def org(store: Store, usd: str, billing_type: str = "prepaid") -> str:
    org_id = new_id("org", NOW)

    async def write(tx: Any) -> None:
        await tx.run("add_org", id=org_id, name="o", billing=billing_type, created_at_ms=NOW)
        await billing.add_credit(tx, org_id, nanos(usd), NOW, "a start")

    await store.write(write)
    return org_id


async def held(store: Store, org_id: str, usd: str) -> str:
    request_id = new_id("req", NOW)
    await store.write(lambda tx: billing.hold(tx, org_id, request_id, nanos(usd), NOW))
    return request_id


async def money(store: Store, org_id: str) -> tuple[int, int]:
    row = await store.one("get_balance", org_id=org_id)
    assert row is not None
    return row["available"], row["held"]


async def in_balance(store: Store) -> None:
    assert await store.slow("audit_balances") == []
    assert await store.slow("audit_overdrafts") == []
    assert await store.slow("audit_refunds") == []


async def test_hold_and_post(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "1")
        request_id = await held(store, org_id, "0.40")
        assert await money(store, org_id) == (nanos("0.60"), nanos("0.40"))
        charged = await store.write(
            lambda tx: billing.capture(tx, org_id, request_id, nanos("0.40"), nanos("0.10"), NOW)
        )
        assert charged == nanos("0.10")
        assert await money(store, org_id) == (nanos("0.90"), 0)
        await in_balance(store)


async def test_hold_and_void(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "1")
        request_id = await held(store, org_id, "0.40")
        await store.write(lambda tx: billing.release(tx, org_id, request_id, nanos("0.40"), NOW))
        assert await money(store, org_id) == (nanos("1"), 0), "to the last nano as before"
        await in_balance(store)


async def test_what_is_above_the_hold_is_our_loss(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "0.40")
        request_id = await held(store, org_id, "0.40")
        charged = await store.write(
            lambda tx: billing.capture(tx, org_id, request_id, nanos("0.40"), nanos("1.20"), NOW)
        )
        assert charged == nanos("0.40")
        assert await money(store, org_id) == (0, 0)
        await in_balance(store)


async def test_a_hold_ends_once(database: Database) -> None:
    """A hundred settlements of one request, of both kinds and side by side: one of them counts."""
    async with database.open() as store:
        org_id = await org(store, "1")
        request_id = await held(store, org_id, "0.40")

        async def settle(number: int) -> bool:
            try:
                if number % 2:
                    await store.write(lambda tx: billing.release(tx, org_id, request_id, nanos("0.40"), NOW))
                else:
                    await store.write(
                        lambda tx: billing.capture(tx, org_id, request_id, nanos("0.40"), nanos("0.1"), NOW)
                    )
            except ConstraintViolated:
                return False
            return True

        assert sum(await asyncio.gather(*(settle(number) for number in range(100)))) == 1
        assert (await money(store, org_id))[1] == 0
        await in_balance(store)


async def test_a_request_is_held_for_once(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "1")
        request_id = await held(store, org_id, "0.10")
        with pytest.raises(ConstraintViolated):
            await store.write(lambda tx: billing.hold(tx, org_id, request_id, nanos("0.10"), NOW))
        assert await money(store, org_id) == (nanos("0.90"), nanos("0.10"))


async def test_too_little_money(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "0.05")
        with pytest.raises(InsufficientBalance) as caught:
            await held(store, org_id, "0.0500001")
        assert caught.value.status == 402
        assert "0.0500001 USD" in caught.value.message
        assert "0.05 USD are available" in caught.value.message
        assert caught.value.should_retry is False
        assert await money(store, org_id) == (nanos("0.05"), 0)


async def test_what_is_reserved_elsewhere_is_left_alone(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "1")
        with pytest.raises(InsufficientBalance):
            await store.write(
                lambda tx: billing.hold(tx, org_id, new_id("req", NOW), nanos("0.5"), NOW, reserved=nanos("0.6"))
            )


async def test_what_costs_nothing_needs_nothing(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "0")
        request_id = await held(store, org_id, "0")
        await store.write(lambda tx: billing.capture(tx, org_id, request_id, Nanos(0), Nanos(0), NOW))
        await in_balance(store)


async def test_who_pays_later_may_owe(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "0", "postpaid")
        request_id = await held(store, org_id, "5")
        await store.write(lambda tx: billing.capture(tx, org_id, request_id, nanos("5"), nanos("5"), NOW))
        assert await money(store, org_id) == (-nanos("5"), 0)
        shown = await billing.Billing(store).balance(org_id)
        assert shown == {
            "object": "balance",
            "billing_type": "postpaid",
            "available": {"amount": None, "currency": "usd"},
        }
        await in_balance(store)


async def test_the_balance_as_it_is_shown(database: Database) -> None:
    async with database.open() as store:
        org_id = await org(store, "12.345")
        await held(store, org_id, "0.005")
        shown = await billing.Billing(store).balance(org_id)
        assert shown["available"] == {"amount": Decimal("12.34"), "currency": "usd"}


async def test_an_overdraft_race(database: Database) -> None:
    """Money for exactly seven; two hundred ask at once, over two processes."""
    async with database.open() as store, database.open() as other:
        org_id = await org(store, "0.70")

        async def ask(number: int) -> bool:
            while True:
                try:
                    await held(store if number % 2 else other, org_id, "0.10")
                except InsufficientBalance:
                    return False
                except StorageUnavailable:  # too many for the pool of a slow machine: nothing was held, ask again
                    continue
                return True

        took = await asyncio.gather(*(ask(number) for number in range(200)))
        assert sum(took) == 7
        assert await money(store, org_id) == (0, nanos("0.70"))
        await in_balance(store)
