"""Rehearse an outage over HTTP."""

from typing import Any

import pytest

from penstock.api.endpoints.drills import run_drill
from penstock.errors import InvalidRequest
from tests.gateway import OpenGateway, RunningGateway, sqlite_only


async def drill(running: RunningGateway, **query: str) -> Any:
    return (await run_drill(running.gateway, running.call(query=query, endpoint="/v1/drill"))).json


async def test_the_last_day_of_the_organization_is_routed_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        await running.image()
        await running.image(caller=await running.create_caller_in_new_org())
        running.clock.advance(60)
        assert (await drill(running))["unaffected"] == 1
        found = await drill(running, down="lab, atelier", dearer="annex=2x")
        assert (found["requests"], found["failed_over"], found["classes"][0]["served_by"]) == (1, 1, {"annex": 1})
        assert found["cost_then"] == 2 * found["cost"]
        running.clock.advance(86_400)
        assert (await drill(running))["requests"] == 0


@sqlite_only
async def test_a_wrong_drill_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for query in (
            {"down": "lb"},
            {"slow": "lab"},
            {"created_after": "2026-01-01T00:00:00Z", "created_before": "2026-02-02T00:00:00Z"},
            {"created_after": "2026-01-02T00:00:00Z", "created_before": "2026-01-01T00:00:00Z"},
        ):
            with pytest.raises(InvalidRequest):
                await drill(running, **query)
