"""Steps of jobs that share a transaction: each is stored only while its own lease is held."""

import asyncio
from typing import Any

import pytest

from penstock.jobs.running import Lease, LeaseLost
from penstock.jobs.steps import Step, write_steps
from penstock.store.base import Change, ConstraintViolated, Row, Store
from tests.gateway import OpenGateway, RunningGateway
from tests.leases import claim_lease
from tests.unit.jobs.manual_run import accept_videos, get_row


async def claimed_videos(running: RunningGateway, count: int) -> list[Lease]:
    leases = [await claim_lease(running.gateway.jobs, video) for video in await accept_videos(running, count)]
    return [lease for lease in leases if lease is not None]


def intent(running: RunningGateway, lease: Lease) -> Step:
    """The step that stores an attempt before it is sent."""
    sent_to = {"provider": "lab", "upstream_model": "video-1", "account_id": None}
    numbers = {"round": 1, "part": 0, "candidate": 0, "count": 1, "created_at_ms": 7}
    belongs = {"org_id": running.caller.org_id}
    attempt = {"id": f"att_{lease.id}", "request_id": lease.id, **belongs, **numbers, **sent_to}
    changes: list[Change] = [("start_request", {"id": lease.id, **belongs, **sent_to}), ("add_attempt", attempt)]
    return Step(lease, changes, is_progress=True, unless_cancelled=True)


def job_id(lease: Lease, upstream_id: str) -> Step:
    """The step that stores the provider's id for a job, and that it has begun."""
    empty = dict.fromkeys(("failure_kind", "failure_message", "http_status", "cost"))
    end: Row = {"id": f"att_{lease.id}", "state": "submitted", "upstream_id": upstream_id, "ref": b"{}", **empty}
    return Step(lease, [("set_attempt", {**end, "at_ms": 8})], is_progress=True, percent=0)


async def states(running: RunningGateway, leases: list[Lease]) -> list[list[str]]:
    return [[row["state"] for row in await running.attempts(lease.id)] for lease in leases]


async def test_steps_that_come_together_share_transactions(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is durable when its caller goes on: the first alone, the others with the next transaction."""
    async with open_gateway(works=False, worker=False) as running:
        leases = await claimed_videos(running, 5)
        transactions = 0
        write = type(running.gateway.store).write

        async def counted(self: Store, work: Any, **options: Any) -> Any:
            nonlocal transactions
            transactions += 1
            return await write(self, work, **options)

        monkeypatch.setattr(type(running.gateway.store), "write", counted)
        steps, org_id = running.gateway.steps, running.caller.org_id

        async def store(lease: Lease) -> tuple[str, str]:
            await steps.add(intent(running, lease), org_id)
            await steps.add(job_id(lease, lease.id), org_id)
            (attempt,) = await running.attempts(lease.id)
            return attempt["state"], (await get_row(running, lease.id))["status"]  # type: ignore[return-value]

        assert set(await asyncio.gather(*map(store, leases))) == {("submitted", "in_progress")}
        assert transactions <= 4


async def test_a_lost_lease_stops_only_its_own_step(open_gateway: OpenGateway) -> None:
    """Of three steps in one transaction, the second is of a worker whose lease was taken over, the third of one that
    has given it back.
    """
    async with open_gateway(works=False, worker=False) as running:
        held, lost, released = leases = await claimed_videos(running, 3)
        given_back = {"id": released.id, "lease_token": released.token}
        await running.gateway.store.write(lambda tx: tx.run("release_lease", **given_back))
        steps = [intent(running, Lease(lost.id, lost.token - 1)), intent(running, held), intent(running, released)]
        assert await running.gateway.store.write(lambda tx: write_steps(tx, steps)) == [None, False, None]
        assert await states(running, leases) == [["intent"], [], []]
        for step in (steps[0], steps[2]):
            with pytest.raises(LeaseLost, match=step.lease.id):
                await running.gateway.steps.add(step, running.caller.org_id)


async def test_after_a_cancel_an_attempt_is_not_stored_but_the_id_of_a_job_is(open_gateway: OpenGateway) -> None:
    """The id belongs to something that may be paid for."""
    async with open_gateway(works=False, worker=False) as running:
        cancelled, other = leases = await claimed_videos(running, 2)
        await running.change(f"UPDATE generations SET cancel_requested = 1 WHERE id = '{cancelled.id}'")  # noqa: S608
        steps = [intent(running, lease) for lease in leases]
        assert await running.gateway.store.write(lambda tx: write_steps(tx, steps)) == [True, False]
        assert await states(running, leases) == [[], ["intent"]]
        await running.change(f"UPDATE generations SET cancel_requested = 1 WHERE id = '{other.id}'")  # noqa: S608
        assert await running.gateway.steps.add(job_id(other, "job-1"), running.caller.org_id)
        assert await states(running, leases) == [[], ["submitted"]]


async def test_an_id_that_another_attempt_has_spoils_no_other_step(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        leases = await claimed_videos(running, 4)
        steps, org_id = running.gateway.steps, running.caller.org_id
        await asyncio.gather(*(steps.add(intent(running, lease), org_id) for lease in leases))
        ids = ["job-1", "job-2", "job-1", "job-3"]
        outcomes = await asyncio.gather(
            *(steps.add(job_id(lease, upstream_id), org_id) for lease, upstream_id in zip(leases, ids, strict=True)),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ConstraintViolated", *["bool"] * 3]
        assert isinstance(outcomes[2], ConstraintViolated)
        assert await states(running, leases) == [["submitted"], ["submitted"], ["intent"], ["submitted"]]


async def test_progress_is_stored_with_the_step(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        (lease,) = await claimed_videos(running, 1)
        steps, org_id = running.gateway.steps, running.caller.org_id

        async def after(step: Step) -> tuple[Any, ...]:
            await running.change("UPDATE generations SET crashes = 4")
            await steps.add(step, org_id)
            row = await get_row(running, lease.id)
            return row["status"], row["progress"], row["crashes"]

        assert await after(Step(lease)) == ("queued", 0, 4)
        assert await after(Step(lease, is_progress=True)) == ("queued", 0, 0)
        assert await after(Step(lease, percent=0)) == ("in_progress", 0, 4)
        assert await after(Step(lease, percent=35)) == ("in_progress", 35, 4)
        assert await after(Step(lease)) == ("in_progress", 35, 4)
