"""A call goes to the next candidate while it may, its failures count for the account that failed, and it is settled."""

from dataclasses import replace

import pytest

from penstock.chat.failover import first_response
from penstock.chat.reserved import ReservedCall, reserve
from penstock.errors import Problem
from penstock.models.routing import Route
from penstock.schema import Request, Response
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.upstream.vendor_account import VendorAccount
from penstock.values import Nanos
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

pytestmark = sqlite_only


def candidates(running: RunningGateway) -> list[Candidate]:
    (own,) = running.gateway.catalog.find("lab/chat", ("chat",)).candidates
    account = VendorAccount(id="acct_1", provider="lab", name="second", credential="k")
    return [own, replace(own, account=account)]


async def reserved_call(running: RunningGateway) -> ReservedCall:
    call = running.call({})
    reservation = await reserve(running.gateway, call, Request(task="chat", model="m", values={}), Nanos(5), None)
    return ReservedCall(running.gateway, reservation)


async def test_the_next_candidate_is_asked_and_health_is_kept_by_account(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        first, second = candidates(running)

        async def ask(candidate: Candidate) -> Response:
            if candidate is first:
                raise AttemptFailed(Failure("unsent", "refused", sent=False))
            return Response(body=b"ok")

        reserved = await reserved_call(running)
        response = await first_response(reserved, Route((first, second)), ask)
        assert response.body == b"ok"
        health = {(row["provider"], row["account"]): row for row in running.gateway.health.report()}
        assert health["lab", None]["failures"] == 1
        assert (health["lab", "acct_1"]["successes"], health["lab", "acct_1"]["failures"]) == (1, 0)
        assert [attempt.kind for attempt in reserved.failed_attempts] == ["unsent"]
        reserved.settle("completed", candidate=second)


async def test_a_call_that_nobody_answers_is_settled(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:

        async def ask(candidate: Candidate) -> Response:
            raise AttemptFailed(Failure("refused", "content policy", status=400))

        reserved = await reserved_call(running)
        with pytest.raises(Problem):
            await first_response(reserved, Route(tuple(candidates(running)), forced=True), ask)
        assert len(reserved.failed_attempts) == 1, "no other provider is asked for refused content"
        await running.gateway.chat_settlement.catch_up(reserved.reservation.call.caller.org_id)
        (record,) = await running.records()
        assert (record["status"], record["cost"]) == ("upstream_failure", 0)
