"""The keys of calls that are not generations."""

from penstock.accounts.idempotency import (
    Claim,
    claim_key,
    delete_expired_keys,
    key_digest,
    release_key,
    take_over_key,
)
from penstock.values import OrgId, Retention
from tests.gateway import OpenGateway, RunningGateway

DAY = Retention.parse("1d")


def claim_of(running: RunningGateway, request_id: str, later_ms: int = 0) -> Claim:
    at_ms = running.clock.now_ms() + later_ms
    return Claim(OrgId(running.caller.org_id), key_digest("chat", "turn-1"), request_id, b"body", at_ms)


async def test_the_first_call_gets_a_key_and_others_are_told_which_call_has_it(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        store = running.gateway.store
        first = claim_of(running, "req_1")
        assert await claim_key(store, first, DAY) is None
        assert await claim_key(store, first, DAY) is None  # its first commit was not confirmed
        assert await claim_key(store, claim_of(running, "req_2", 2000), DAY) == first


async def test_only_the_call_that_has_a_key_can_release_it(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        store = running.gateway.store
        first = claim_of(running, "req_1")
        await claim_key(store, first, DAY)
        await release_key(store, claim_of(running, "req_2"))
        assert await claim_key(store, claim_of(running, "req_3"), DAY) == first
        await release_key(store, first)
        assert await claim_key(store, claim_of(running, "req_3"), DAY) is None


async def test_one_of_two_calls_takes_a_key_over(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        store = running.gateway.store
        first = claim_of(running, "req_1")
        await claim_key(store, first, DAY)
        assert await take_over_key(store, claim_of(running, "req_2"), first, DAY)
        assert not await take_over_key(store, claim_of(running, "req_3"), first, DAY)


async def test_an_expired_key_is_free_and_is_removed(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        store = running.gateway.store
        day_ms = DAY.seconds * 1000
        first = claim_of(running, "req_1")
        await claim_key(store, first, DAY)
        end = first.created_at_ms + day_ms
        assert await delete_expired_keys(store, end - 1) == 0
        assert await claim_key(store, claim_of(running, "req_2", day_ms), DAY) is None
        assert await delete_expired_keys(store, end + day_ms) == 1


def test_keys_of_two_operations_differ() -> None:
    assert key_digest("chat", "k") != key_digest("response", "k")
