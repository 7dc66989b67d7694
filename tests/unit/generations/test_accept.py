"""Accepting a call: everything that belongs to it is stored together, or nothing is."""

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from penstock.errors import InsufficientBalance, Problem, RateLimited
from penstock.failpoints import FailpointRaised
from penstock.generations import validate
from penstock.generations.accept import Accepted, accept
from penstock.generations.plan import make_plan
from penstock.jobs.running import Lease
from penstock.schema import Caller, do_nothing
from penstock.values import nanos
from tests.fake_providers.scripted import png
from tests.gateway import OpenGateway, RunningGateway, failpoint_raises, sqlite_only, two_providers

TABLES = ("requests", "generations", "transfers", "media", "usage_slots")
IMAGE = {"image_url": "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()}


async def accept_video(
    running: RunningGateway,
    caller: Caller | None = None,
    release_body: Callable[[], None] = do_nothing,
    **body: Any,
) -> Accepted:
    """A video of four seconds."""
    call = running.call({"model": "video-1", "prompt": "a train", "seconds": 4, **body}, caller=caller)
    call = msgspec.structs.replace(call, release_body=release_body)
    validated = validate.video(call, running.gateway.settings)
    planned = await make_plan(running.gateway, call, validated, ("video",))
    return await accept(running.gateway, call, planned)


async def row_counts(running: RunningGateway) -> dict[str, int]:
    """The number of rows in each table."""
    return {table: len(await running.rows(f"SELECT * FROM {table}")) for table in TABLES}  # noqa: S608


async def test_all_of_a_call_is_stored_together(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        before = await row_counts(running)
        accepted = await accept_video(
            running, input_reference=IMAGE, idempotency_key="k1", webhook_url="https://a.example/"
        )
        row = accepted.row
        assert (row.status, row.webhook_url, accepted.is_repeated) == ("queued", "https://a.example/", False)
        after = await row_counts(running)
        assert {table: after[table] - before[table] for table in TABLES} == {
            "requests": 1, "generations": 1, "transfers": 1, "media": 1, "usage_slots": 0,
        }  # fmt: skip
        record = await running.record(row.id)
        assert (record["status"], record["model"], record["cost"]) == ("pending", "video-1", 0)
        available, held = await running.money()
        assert held == row.hold > 0
        assert available + held == nanos("10")
        assert await running.transfers(row.id) == {"hold": row.hold}


@pytest.mark.parametrize("place", ["accept.before_tx", "accept.in_tx"])
async def test_an_interrupted_acceptance_leaves_nothing(open_gateway: OpenGateway, place: str) -> None:
    async with open_gateway(works=False) as running:
        before = await row_counts(running)
        money = await running.money()
        with failpoint_raises(place), pytest.raises(FailpointRaised):
            await accept_video(running, input_reference=IMAGE, idempotency_key="k1")
        assert await row_counts(running) == before
        assert await running.money() == money
        assert not (await accept_video(running, idempotency_key="k1")).is_repeated, "the key was not used up"


async def test_a_committed_acceptance_stands(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        with failpoint_raises("accept.after_commit"), pytest.raises(FailpointRaised):
            await accept_video(running, idempotency_key="k1")
        repeated = await accept_video(running, idempotency_key="k1")
        assert (repeated.row.status, repeated.lease, repeated.is_repeated) == ("queued", None, True)
        assert len(await running.records()) == 1


async def test_one_idempotency_key_is_one_generation(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        made = await asyncio.gather(*[accept_video(running, idempotency_key="k1") for _ in range(8)])
        assert len({accepted.row.id for accepted in made}) == 1
        assert [accepted.is_repeated for accepted in made].count(False) == 1
        assert len(await running.records()) == 1
        row = made[0].row
        assert await running.money() == (nanos("10") - row.hold, row.hold)


async def test_a_call_that_repeats_a_key_leaves_no_input_files(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        for _ in range(2):
            await accept_video(running, idempotency_key="k1", input_reference=IMAGE)
        assert len(await running.storage.list_files()) == 1


@sqlite_only
async def test_the_input_files_of_a_refused_call_take_no_room(open_gateway: OpenGateway) -> None:
    """Otherwise calls that are refused would use up the quota until the stored bytes are added up again."""
    async with open_gateway(works=False, storage_bytes_per_org=len(png(32, 32))) as running:
        caller = await without_balance(running)
        for _ in range(2):
            with pytest.raises(InsufficientBalance):
                await accept_video(running, caller, input_reference=IMAGE)


async def without_balance(running: RunningGateway) -> Caller:
    return await running.create_caller_in_new_org("0.000001")


async def one_at_a_time(running: RunningGateway) -> Caller:
    caller = await running.create_caller(concurrent_requests=1)
    await accept_video(running, caller)
    return caller


async def one_a_minute(running: RunningGateway) -> Caller:
    caller = await running.create_caller(requests_per_minute=1)
    await accept_video(running, caller)
    return caller


async def a_cent_a_day(running: RunningGateway) -> Caller:
    return await running.create_caller(usd_per_day="0.01")


@pytest.mark.parametrize(
    ("who", "kind"),
    [
        (without_balance, InsufficientBalance),
        (one_at_a_time, RateLimited),
        (one_a_minute, RateLimited),
        (a_cent_a_day, RateLimited),
    ],
)
async def test_a_refused_call_stores_nothing(open_gateway: OpenGateway, who: Any, kind: type[Problem]) -> None:
    """Neither rows nor input files: callers without money could fill the disk with them."""
    async with open_gateway(works=False) as running:
        caller = await who(running)
        before = await row_counts(running)
        with pytest.raises(kind):
            await accept_video(running, caller, input_reference=IMAGE)
        assert await row_counts(running) == before
        assert await running.storage.list_files() == []
        assert not (await accept_video(running)).is_repeated, "other callers are not affected"


@sqlite_only
async def test_a_body_is_released_when_money_is_held(open_gateway: OpenGateway) -> None:
    """Until then it counts as one that waits."""
    async with open_gateway(works=False) as running:
        released: list[str] = []
        with pytest.raises(InsufficientBalance):
            await accept_video(running, await without_balance(running), partial(released.append, "refused"))
        await accept_video(running, release_body=partial(released.append, "accepted"))
        assert released == ["accepted"]


@sqlite_only
async def test_limits_are_off_unless_set(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        made = [await accept_video(running, seconds=1) for _ in range(12)]
        assert len({accepted.row.id for accepted in made}) == 12


async def test_held_money_is_not_spent_twice(open_gateway: OpenGateway) -> None:
    """As many calls are accepted as can be paid for, however many come at once."""
    async with open_gateway(works=False) as running:
        price = (await accept_video(running)).row.hold
        room = (await running.money())[0] // price
        made = await asyncio.gather(*[accept_video(running) for _ in range(room + 5)], return_exceptions=True)
        assert [type(outcome) for outcome in made if isinstance(outcome, BaseException)] == [InsufficientBalance] * 5
        assert (await running.money())[0] < price


async def test_the_lease_goes_to_the_process_that_runs_the_generation(open_gateway: OpenGateway) -> None:
    """On SQLite a worker runs what it accepts; on Postgres, and without a worker, another process claims it."""
    async with open_gateway(works=False) as running:
        accepted = await accept_video(running)
        if running.gateway.store.dialect == "postgres":
            assert (accepted.lease, accepted.row.lease_token) == (None, 0)
        else:
            assert accepted.lease == Lease(accepted.row.id, accepted.row.lease_token)
    async with open_gateway(works=False, worker=False) as running:
        accepted = await accept_video(running)
        assert (accepted.lease, accepted.row.lease_token, accepted.is_repeated) == (None, 0, False)


# ------------------------------------------------------------------------------------------------- images, sent at once


async def transactions(running: RunningGateway, monkeypatch: pytest.MonkeyPatch, **call: Any) -> list[list[str]]:
    """The names of the statements in each transaction of one image."""
    found: list[list[str]] = []
    store = running.gateway.store
    write = store.write

    async def observed_write(work: Any, **options: Any) -> Any:
        names: list[str] = []

        class Observed:
            def __init__(self, tx: Any) -> None:
                self._tx = tx

            def __getattr__(self, method: str) -> Any:
                def run(name: Any, *arguments: Any, **values: Any) -> Any:
                    names.extend([name] if isinstance(name, str) else [statement[0] for statement in name])
                    return getattr(self._tx, method)(name, *arguments, **values)

                return run

        result = await write(lambda tx: work(Observed(tx)), **options)
        found.append(names)
        return result

    monkeypatch.setattr(store, "write", observed_write)
    await running.image(**call)
    monkeypatch.setattr(store, "write", write)
    return [names for names in found if names and names[0] != "make_far_messages_due"]


async def test_an_image_costs_two_transactions(open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_gateway() as running:
        await running.image()
        accepted, completed = await transactions(running, monkeypatch)
        assert accepted == ["add_request", "add_generation", "add_attempt", "add_transfer", "hold_amount"]
        assert completed == [
            "complete_generation", "set_attempt", "add_media", "end_generation_request",
            "add_usage", "add_transfer", "end_hold",
        ]  # fmt: skip
        record = (await running.records())[0]
        assert (record["status"], record["provider"]) == ("completed", "lab")
        assert [attempt["state"] for attempt in await running.attempts(record["id"])] == ["completed"]


async def test_the_caller_of_an_interrupted_image_is_gone_and_pays_nothing(open_gateway: OpenGateway) -> None:
    """The next process cannot know whether the image was sent, and does not send it. One that nobody awaits is made."""
    async with two_providers() as labs:
        async with open_gateway(labs=labs) as running:
            with failpoint_raises("submit.intent_committed"), pytest.raises(Problem):
                await running.image(prompt="awaited")
        async with open_gateway(labs=labs) as running:
            record = await running.wait_for_request((await running.records())[0]["id"])
            assert (record["status"], record["cost"]) == ("upstream_failure", 0)
            assert [row["state"] for row in await running.attempts(record["id"])] == ["unknown"]
            with failpoint_raises("accept.after_commit"), pytest.raises(FailpointRaised):
                await running.image(prompt="not awaited", headers={"prefer": "respond-async"})
        async with open_gateway(labs=labs) as running:
            (other,) = [found["id"] for found in await running.records() if found["id"] != record["id"]]
            assert (await running.wait_for_request(other))["status"] == "completed"
        assert len(labs[0].images) == 1
