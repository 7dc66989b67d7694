"""Request records: attempts, cost lines, outputs and webhook deliveries."""

from decimal import Decimal
from typing import Any, get_args

import pytest

from penstock.accounts.request_filters import Filters
from penstock.accounts.request_records import RequestRow
from penstock.chat.endpoint import complete_chat
from penstock.errors import AllProvidersExhausted, Problem
from penstock.generations.payloads import delete_expired
from penstock.generations.records import REASONS, detailed_records, failure_reasons
from penstock.providers.spec import FailureKind
from penstock.schema import Caller, Response
from penstock.values import OrgId
from tests.fake_providers import faults
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.webhook_receivers import Receiver

CHAT = {"messages": [{"role": "user", "content": "one two three"}], "max_tokens": 20}
HOOK = "https://hooks.example.com/in"


async def records(running: RunningGateway, *request_ids: str, caller: Caller | None = None) -> list[dict[str, Any]]:
    rows = [await running.gateway.requests.get(running.caller.org_id, request_id) for request_id in request_ids]
    found = [row for row in rows if isinstance(row, RequestRow)]
    return await detailed_records(running.gateway, running.call(caller=caller), found)


async def chat(running: RunningGateway, **body: Any) -> Response:
    body = {**CHAT, "model": "lab/chat", **body}
    return await complete_chat(running.gateway, running.call(body, endpoint="/compat/v1/chat/completions"))


async def newest(running: RunningGateway) -> dict[str, Any]:
    await running.gateway.chat_settlement.catch_up(running.caller.org_id)
    rows = sorted(await running.records(), key=lambda row: row["id"])
    [record] = await records(running, rows[-1]["id"])
    running.clock.advance(0.001)
    return record


def test_every_kind_of_failure_has_a_reason_in_plain_words() -> None:
    assert REASONS.keys() == set(get_args(FailureKind))


async def test_an_image_shows_its_attempts_cost_lines_and_outputs(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.next(faults.busy(7))
        image = await running.image(n=2)
        [record] = await records(running, image["id"])
        assert (record["kind"], record["provider"], record["key_name"]) == ("image", "annex", "first key")
        assert record["executed_model"] == image["metadata"]["executed_model"]
        failed, made = record["attempts"]
        assert (failed["provider"], failed["status"], failed["http_status"]) == ("lab", "failed", 429)
        assert failed["outputs"] == 2
        assert failed["failure"]["kind"] == "busy"
        assert failed["failure"]["reason"] == REASONS["busy"]
        assert "Rate limit reached." in failed["failure"]["message"]
        assert (made["provider"], made["status"], made["failure"]) == ("annex", "completed", None)
        assert failed["started_at"] <= failed["ended_at"] <= made["ended_at"]
        [line] = record["cost_lines"]
        assert (line["metric"], line["quantity"], line["amount"]) == ("image", 2, record["cost"])
        assert line["unit_price"] * 2 == record["cost"]
        assert [output["content_type"] for output in record["outputs"]] == ["image/png", "image/png"]
        assert all(output["url"].startswith("http://gateway.test/m/med_") for output in record["outputs"])
        assert (record["webhook"], record["purged_at"], record["progress"]) == (None, None, 100)

        await running.purge(image["id"])
        [purged] = await records(running, image["id"])
        assert (purged["outputs"], purged["attempts"][0]["failure"]["message"]) == ([], None)
        assert purged["purged_at"] is not None
        assert purged["cost_lines"] == record["cost_lines"]


async def test_outputs_and_attempts_of_other_organizations_are_never_shown(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        image = await running.image()
        other = await running.create_caller_in_new_org()
        [record] = await records(running, image["id"], caller=other)
        assert (record["outputs"], record["attempts"], record["key_name"]) == ([], [], None)


async def test_a_video_shows_its_deliveries(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        receiver = Receiver(running.clock, 503)
        running.gateway.sender._client = receiver
        video_id = (await running.video(webhook_url=HOOK)).json["id"]
        await running.wait_for_video(video_id)

        async def met() -> bool:
            return len((await records(running, video_id))[0]["webhook"]["deliveries"]) >= 2

        await running.wait_until(met)
        receiver.respond = 204

        async def delivered() -> bool:
            return str((await records(running, video_id))[0]["webhook"]["status"]) == "delivered"

        await running.wait_until(delivered)
        [record] = await records(running, video_id)
        webhook = record["webhook"]
        assert (webhook["id"], webhook["event"], webhook["url"]) == (f"msg_{video_id}", "video.completed", HOOK)
        assert webhook["next_at"] is None
        statuses = [delivery["status_code"] for delivery in webhook["deliveries"]]
        assert statuses[:2] + statuses[-1:] == [503, 503, 204]
        assert [delivery["number"] for delivery in webhook["deliveries"]] == list(range(1, len(statuses) + 1))
        assert webhook["deliveries"][0]["result"] == "status 503"


async def test_an_unfinished_request_shows_the_attempt_under_way(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        video_id = (await running.video()).json["id"]

        async def met() -> bool:
            attempts = (await records(running, video_id))[0]["attempts"]
            return bool(attempts) and attempts[0]["status"] == "running"

        await running.wait_until(met, 0)
        [record] = await records(running, video_id)
        [attempt] = record["attempts"]
        assert (record["status"], record["provider"]) == ("processing", "lab")
        assert (attempt["ended_at"], attempt["failure"]) == (None, None)
        assert attempt["upstream_id"]
        await running.wait_for_video(video_id)


async def test_a_chat_shows_tokens_lines_and_attempts(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.chats.next(faults.broken)
        await chat(running)
        record = await newest(running)
        assert (record["kind"], record["provider"], record["status"]) == ("chat", "annex", "completed")
        assert (record["input_tokens"], record["cached_tokens"], record["output_tokens"]) == (3, 0, 3)
        assert [(line["metric"], line["quantity"]) for line in record["cost_lines"]] == [
            ("input_token", 3),
            ("output_token", 3),
        ]
        assert sum(line["amount"] for line in record["cost_lines"]) == record["cost"] == Decimal("0.000009")
        failed, made = record["attempts"]
        assert (failed["provider"], failed["status"], failed["http_status"]) == ("lab", "failed", 500)
        assert (made["provider"], made["status"], made["model"]) == ("annex", "completed", "chat-1")
        assert failed["ended_at"] == made["started_at"]

        running.lab.chats.next(faults.broken)
        running.annex.chats.next(faults.busy(3))
        with pytest.raises(AllProvidersExhausted):
            await chat(running)
        record = await newest(running)
        assert [attempt["status"] for attempt in record["attempts"]] == ["failed", "failed"]
        assert (record["provider"], record["input_tokens"], record["cost_lines"]) == ("annex", None, [])

        await running.purge(record["id"])
        [purged] = await records(running, record["id"])
        assert [attempt["failure"]["message"] for attempt in purged["attempts"]] == [None, None]
        assert [attempt["http_status"] for attempt in purged["attempts"]] == [500, 429]


@sqlite_only
async def test_a_stream_that_breaks_off_is_a_failed_attempt(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        running.lab.chats.next(faults.cut_stream(2))
        response = await chat(running, stream=True)
        assert response.chunks is not None
        assert [chunk async for chunk in response.chunks]
        record = await newest(running)
        [attempt] = record["attempts"]
        assert record["status"] == "upstream_failure"
        assert (attempt["status"], attempt["failure"]["kind"]) == ("failed", "broken")


@sqlite_only
async def test_without_stored_payloads_no_message_of_a_provider_is_stored(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="none") as running:
        running.lab.chats.next(faults.error(500, "CANARY is not a word."))
        with pytest.raises(Problem):
            await chat(running)
        record = await newest(running)
        assert record["attempts"][0]["failure"]["message"] == "The message is not stored."
        assert await running.tables_with("CANARY") == []


@sqlite_only
async def test_what_is_not_charged_is_a_line_of_its_own(open_gateway: OpenGateway) -> None:
    """The lines add up to the cost also when a provider reports more than was reserved."""
    async with open_gateway() as running:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        running.lab.chats.next(faults.altered(usage={**usage, "cost": 5}))
        await chat(running)
        record = await newest(running)
        assert [line["metric"] for line in record["cost_lines"]] == ["reported", "not_charged"]
        assert sum(line["amount"] for line in record["cost_lines"]) == record["cost"] < 5


async def test_failures_of_images_and_chats_have_the_reason_of_their_last_attempt(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        for lab, annex in ((running.lab.images, running.annex.images), (running.lab.chats, running.annex.chats)):
            lab.next(faults.busy(3))
            annex.next(faults.broken)
        with pytest.raises(AllProvidersExhausted):
            await running.image()
        image = await newest(running)
        with pytest.raises(AllProvidersExhausted):
            await chat(running)
        failed_chat = await newest(running)
        org_id = running.caller.org_id
        ids = [image["id"], failed_chat["id"], "req_unknown"]
        assert await failure_reasons(running.gateway.store, org_id, ids) == dict.fromkeys(ids[:2], REASONS["broken"])
        assert await failure_reasons(running.gateway.store, OrgId("org_other"), ids) == {}


# ------------------------------------------------------------------------------------------------------------- prompts


async def found(running: RunningGateway, search: str, caller: Caller | None = None) -> list[str]:
    """The prompts of the requests that a search finds, sorted."""
    org_id = (caller or running.caller).org_id
    page = await running.gateway.requests.list_page(org_id, Filters(search=search, summary=True))
    assert page.summary is not None
    assert page.summary["count"] == len(page.data)
    shown = await detailed_records(running.gateway, running.call(caller=caller), page.data)
    return sorted(record["prompt"] for record in shown)


async def test_requests_are_found_by_the_words_of_their_prompts(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all") as running:
        await running.image(prompt='A RED Fox in the "snow"')
        await running.video(prompt="ÜBER den Flüssen, 100% rot")
        await running.image(prompt="x" * 400 + " end")
        await chat(running, messages=[{"role": "user", "content": "Which foxes are red?"}])
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        fox, rivers = 'A RED Fox in the "snow"', "ÜBER den Flüssen, 100% rot"
        assert await found(running, "red fox") == [fox, "Which foxes are red?"]
        assert await found(running, 'SNOW"') == [fox]
        assert await found(running, "flüssen über") == await found(running, "FLÜSSEN 100%") == [rivers]
        assert await found(running, "END") == ["x" * 300]
        assert (
            await found(running, "red river") == await found(running, "values") == await found(running, "model") == []
        )
        assert await found(running, "r%d") == await found(running, "r_d") == []


async def test_nobody_finds_the_prompts_of_another_organization(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all") as running:
        image = await running.image(prompt="a red fox")
        other = await running.create_caller_in_new_org()
        assert await found(running, "red fox", other) == []
        [record] = await records(running, image["id"], caller=other)
        assert record["prompt"] is None


async def test_prompts_are_found_until_they_expire_or_are_purged(open_gateway: OpenGateway) -> None:
    async with open_gateway(payloads="all", payload_retention="2h") as running:
        image = await running.image(prompt="a red fox")
        await chat(running, messages=[{"role": "user", "content": "a red fox?"}])
        await running.gateway.chat_settlement.catch_up(running.caller.org_id)
        assert await found(running, "fox") == ["a red fox", "a red fox?"]
        await running.purge(image["id"])
        assert await found(running, "fox") == ["a red fox?"]
        running.clock.advance(7_300)
        await delete_expired(running.gateway)
        assert await found(running, "fox") == []

    async with open_gateway(payload_retention="2h") as running:
        await running.image(prompt="a red fox")
        await chat(running, messages=[{"role": "user", "content": "a red fox?"}])
        assert await found(running, "fox") == ["a red fox"], "chats are not stored by default"
        running.clock.advance(7_300)
        await delete_expired(running.gateway)
        assert await found(running, "fox") == []
