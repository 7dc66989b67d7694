"""A chat call whose money is reserved: what its end tells the record and the access line."""

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.api.endpoints.metrics import list_metrics
from penstock.chat.endpoint import complete_chat
from penstock.errors import Problem
from penstock.telemetry.call_report import open_report
from tests.fake_providers import faults
from tests.gateway import ENDED, OpenGateway, RunningGateway, sqlite_only

pytestmark = sqlite_only
ASK = {"model": "lab/chat", "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}


async def last_record(running: RunningGateway) -> dict[str, object]:
    async def met() -> bool:
        return [record["status"] in ENDED for record in await running.records()] == [True]

    await running.wait_until(met, 0)
    (record,) = await running.records()
    return record


async def test_a_completed_call_reports_its_provider_and_its_cost(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        report = open_report(running.clock)
        await complete_chat(running.gateway, running.call(ASK, endpoint="/compat/v1/chat/completions"))
        assert (report.provider, report.cost) == ("lab", 9000)
        record = await last_record(running)
        assert (record["provider"], record["cost"]) == ("lab", 9000)


async def test_a_failed_call_reports_the_provider_that_failed_last_and_no_cost(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.chats.always(faults.broken)
        report = open_report(running.clock)
        with pytest.raises(Problem):
            await complete_chat(running.gateway, running.call(ASK, endpoint="/compat/v1/chat/completions"))
        assert (report.provider, report.cost) == ("lab", 0)
        record = await last_record(running)
        assert (record["provider"], record["cost"], record["status"]) == ("lab", 0, "upstream_failure")


async def outcomes(running: RunningGateway) -> dict[str, float]:
    text = (await list_metrics(running.gateway, running.call())).body or b""
    samples = [sample for family in text_string_to_metric_families(bytes(text).decode()) for sample in family.samples]
    return {sample.labels["outcome"]: sample.value for sample in samples if sample.name == "penstock_attempts_total"}


async def test_a_stream_that_its_caller_leaves_is_no_success_and_no_failure_of_the_provider(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway() as running:
        call = running.call({**ASK, "stream": True}, endpoint="/compat/v1/chat/completions")
        for is_left in (True, False):
            response = await complete_chat(running.gateway, call)
            chunks: Any = response.chunks
            await anext(chunks)
            if is_left:
                await chunks.aclose()
                assert await outcomes(running) == {"interrupted": 1}
                call = running.call({**ASK, "stream": True}, endpoint="/compat/v1/chat/completions")
            else:
                assert [chunk async for chunk in chunks]
        assert await outcomes(running) == {"interrupted": 1, "success": 1}
