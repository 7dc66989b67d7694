"""Labels: which a call has, which are refused, and that the records and the sums have exactly these."""

import asyncio
import random
from collections import defaultdict
from typing import Any

import msgspec
import pytest

from penstock.accounts.labels import (
    MAX_LABELS,
    OTHER,
    LabelValues,
    call_labels,
    checked_declarations,
    declare,
    usable_labels,
)
from penstock.accounts.request_filters import Filters
from penstock.accounts.usage import UsageFilters
from penstock.chat.endpoint import complete_chat
from penstock.errors import InvalidRequest, Problem
from penstock.schema import Call, Caller, DeclaredLabel
from penstock.values import OrgId, nanos
from tests.gateway import OpenGateway, RunningGateway

CUSTOMER = DeclaredLabel("customer", required=True)
PROJECT = DeclaredLabel("project")
KIND = DeclaredLabel("kind", values=("test", "live"))
DECLARED = (CUSTOMER, PROJECT, KIND)


def call(header: str | None = None, *, key: dict[str, str] | None = None, declared: Any = DECLARED) -> Call:
    caller = Caller(OrgId("org_1"), "key_1", labels=key or {}, declared_labels=declared)
    headers = {} if header is None else {"x-service-labels": header}
    return Call(id="req_1", caller=caller, endpoint="/", at_ms=0, started=0.0, headers=headers)


# ----------------------------------------------------------------------------------------------------------- one call


def test_the_key_wins_over_the_field_and_the_field_over_the_header() -> None:
    assert call_labels(call("customer=a,project=b"), None) == {"customer": "a", "project": "b"}
    assert call_labels(call("customer=a,project=b"), {"project": "c"}) == {"customer": "a", "project": "c"}
    fixed = call("customer=a,project=b", key={"customer": "theirs"})
    assert call_labels(fixed, {"customer": "c"}) == {"customer": "theirs", "project": "b"}


def test_a_header_is_percent_encoded() -> None:
    labels = call_labels(call("customer=M%C3%BCller%20%26%20Co%2C%20Ltd, project=a=b"), None)
    assert labels == {"customer": "Müller & Co, Ltd", "project": "a=b"}


def test_a_call_without_labels_and_declarations_has_none() -> None:
    assert call_labels(call(declared=()), None) == {}


def test_a_label_of_the_key_that_is_no_longer_declared_is_left_out() -> None:
    assert call_labels(call(key={"gone": "x", "customer": "a"}), None) == {"customer": "a"}


@pytest.mark.parametrize(
    ("header", "field", "param", "words"),
    [
        (None, None, "labels.customer", "is required by your organization"),
        (None, {"customer": "a", "colour": "red"}, "labels.colour", "declared are `customer`, `project`, `kind`"),
        (None, {"customer": "a", "kind": "x"}, "labels.kind", "must be one of `test`, `live`"),
        (None, {"customer": ""}, "labels.customer", "1 to 128 printable"),
        (None, {"customer": "a\nb"}, "labels.customer", "1 to 128 printable"),
        (None, {"customer": "a" * 129}, "labels.customer", "1 to 128 printable"),
        (None, {"customer": 7}, "labels.customer", "1 to 128 printable"),
        (None, {"Customer": "a"}, "labels", "a lowercase letter"),
        (None, "customer=a", "labels", "must be an object"),
        (None, {f"l{number}": "a" for number in range(MAX_LABELS + 1)}, "labels", "at most 10"),
        ("customer", None, "X-Service-Labels", "customer=acme,project=spring"),
        ("customer=a,customer=b", None, "X-Service-Labels", "each name once"),
        ("customer=%ff", None, "X-Service-Labels", "UTF-8"),
        ("customer=", None, "X-Service-Labels.customer", "1 to 128 printable"),
    ],
)
def test_what_is_wrong_is_named(header: str | None, field: Any, param: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        call_labels(call(header), field)
    assert (caught.value.param, words in caught.value.message) == (param, True), caught.value.message
    assert usable_labels(call(header), field) == {}


def test_without_declarations_a_label_is_refused_with_a_sentence() -> None:
    with pytest.raises(InvalidRequest, match="it has declared none"):
        call_labels(call(declared=()), {"customer": "a"})


@pytest.mark.parametrize(
    "bad",
    [
        {},
        [{"name": "A"}],
        [{"name": "a"}, {"name": "a"}],
        [{"name": "a", "values": []}],
        [{"name": "a", "values": [""]}],
        [{"name": "a", "colour": 1}],
        [{"name": "a", "required": "yes"}],
        [{"required": True}],
        [{"name": f"a{number}"} for number in range(MAX_LABELS + 1)],
    ],
)
def test_bad_declarations_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidRequest):
        checked_declarations(bad)


# -------------------------------------------------------------------------------------------------------------- values


async def test_a_label_has_a_limited_number_of_values(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("penstock.accounts.labels.MAX_VALUES", 3)
    async with open_gateway() as running:
        caller = await labelled_caller(running)
        for value in ("a", "b", "a"):
            await running.image(caller=caller, labels={"customer": value})
        values = LabelValues(running.gateway.store, running.clock)  # as after a restart
        seen = [await values.limited(caller.org_id, {"customer": value}) for value in ("b", "c", "d", "a", "e")]
        assert [labels["customer"] for labels in seen] == ["b", "c", OTHER, "a", OTHER]
        said = f"label customer of {caller.org_id} has too many values: further ones count as one"
        assert [line for line in caplog.messages if "too many values" in line] == [said], "it is said once"


# ------------------------------------------------------------------------------------------------- records and sums


async def labelled_caller(running: RunningGateway, *labels: DeclaredLabel, **options: Any) -> Caller:
    await declare(running.gateway.store, running.clock, running.caller.org_id, labels or DECLARED)
    return await running.create_caller(**options)


async def chat(running: RunningGateway, caller: Caller, **body: Any) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    full = {"model": "lab/chat", "messages": messages, "max_tokens": 50, **body}
    await complete_chat(running.gateway, running.call(full, caller=caller, endpoint="/compat/v1/chat/completions"))


async def test_providers_do_not_see_labels(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        lab = running.lab
        caller = await labelled_caller(running)
        await running.image(caller=caller, labels={"customer": "sesame"})
        await chat(running, caller, labels={"customer": "sesame"})
        video = await running.video(caller=caller, labels={"customer": "sesame"})
        await running.wait_for_video(video.json["id"])
        sent = [str(received) for endpoint in (lab.images, lab.chats, lab.videos) for received in endpoint.received]
        assert len(sent) == 3
        assert not [text for text in sent if "sesame" in text or "labels" in text]
        records = (await running.gateway.requests.list_records(caller.org_id, Filters())).data
        assert [record["labels"] for record in records] == [{"customer": "sesame"}] * 3


async def test_recordings_ignore_labels(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await labelled_caller(running)
        running.clock.advance(1)
        headers = {"x-service-replay": "replay-or-record"}
        for customer in ("acme", "other"):
            await running.image(caller=caller, headers=headers, labels={"customer": customer})
            running.clock.advance(1)
        assert len(running.lab.images) == 1
        records = (await running.gateway.requests.list_records(caller.org_id, Filters())).data
        assert [record["labels"] for record in records] == [{"customer": "other"}, {"customer": "acme"}]


async def test_a_refused_call_is_recorded_with_its_labels(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await labelled_caller(running)
        call = running.call({"model": "no/such"}, caller=caller)
        labels = {"customer": "acme"}
        await running.gateway.requests.reject(call, InvalidRequest("no"), None, labels=labels)
        page = await running.gateway.requests.list_records(caller.org_id, Filters(labels=labels))
        assert [record["labels"] for record in page.data] == [labels]


async def test_requests_are_found_by_label_and_session(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await labelled_caller(running)
        for number in range(6):
            labels = {"customer": f"c{number % 2}", **({"project": "p"} if number % 3 == 0 else {})}
            await running.image(caller=caller, labels=labels, session_id=f"session {number // 3}", prompt=str(number))
        requests = running.gateway.requests
        for filters, count in (
            (Filters(labels={"customer": "c0"}, summary=True), 3),
            (Filters(labels={"customer": "c1", "project": "p"}, summary=True), 1),
            (Filters(labels={"customer": "c0"}, session_id="session 1", summary=True), 1),
            (Filters(labels={"customer": "c0"}, status="completed", model="image-1", summary=True), 3),
            (Filters(labels={"customer": "none"}, summary=True), 0),
            (Filters(session_id="session 0", summary=True), 3),
            (Filters(search="ssion 1", summary=True), 3),
        ):
            page = await requests.list_records(caller.org_id, filters)
            assert page.summary is not None
            assert (len(page.data), page.summary["count"]) == (count, count), filters
            ids = [record["id"] for record in page.data]
            assert ids == sorted(ids, reverse=True)
        first = await requests.list_records(caller.org_id, Filters(labels={"customer": "c0"}, limit=2))
        rest = await requests.list_records(
            caller.org_id, Filters(labels={"customer": "c0"}, limit=2, starting_after=first.next_cursor)
        )
        assert (len(first.data), len(rest.data)) == (2, 1)
        other = await running.create_caller_in_new_org()
        assert not (await requests.list_records(other.org_id, Filters(labels={"customer": "c0"}))).data


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_sums_of_all_values_are_the_total(open_gateway: OpenGateway, seed: int) -> None:
    """Random images, videos and chats, some of which fail: what each value spent, to the nano-dollar."""
    draw = random.Random(seed)
    async with open_gateway() as running:
        caller = await labelled_caller(running, DeclaredLabel("customer"), PROJECT)
        spent = defaultdict[str | None, int](int)
        for number in range(25):
            customer = draw.choice([None, "acme", "Müller & Co", "*"])
            labels = {} if customer is None else {"customer": customer, "project": f"p{number % 3}"}
            kind = draw.choice(["image", "chat", "video", "failing"])
            if kind == "image":
                await running.image(caller=caller, labels=labels, n=draw.randint(1, 3))
            elif kind == "chat":
                await chat(running, caller, labels=labels)
            elif kind == "video":
                video = await running.video(caller=caller, labels=labels, seconds=draw.randint(1, 4))
                await running.wait_for_video(video.json["id"])
            else:
                with pytest.raises(Problem):
                    await running.image(caller=caller, labels=labels, model="no/such")
        gateway = running.gateway
        await gateway.chat_settlement.catch_up(caller.org_id)
        async for row in gateway.requests.iterate(caller.org_id, Filters()):
            labels = {} if row.labels is None else msgspec.json.decode(row.labels)
            spent[labels.get("customer")] += row.cost
        assert sum(spent.values()) > 0

        filters = UsageFilters(start_ms=running.clock.now_ms() - 86_400_000, end_ms=running.clock.now_ms() + 86_400_000)
        report = await gateway.usage.report(caller.org_id, filters, "month", ["label:customer"])
        sums = {group["group"]: nanos(group["cost"]) for group in report["groups"]}
        assert sums == {customer: cost for customer, cost in spent.items() if customer in sums}
        assert sum(sums.values()) == nanos(report["total"]["cost"]) == sum(spent.values())
        pairs = await gateway.usage.report(caller.org_id, filters, "month", ["label:customer", "model"])
        assert sum(nanos(group["cost"]) for group in pairs["groups"]) == sum(spent.values())
        months = await running.rows("SELECT value, spent FROM label_spend WHERE name = 'customer' AND spent > 0")
        assert {row["value"]: row["spent"] for row in months} == {
            customer: cost for customer, cost in spent.items() if customer is not None and cost
        }


async def test_parallel_calls_lose_no_label(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        caller = await labelled_caller(running)
        calls = [running.image(caller=caller, labels={"customer": f"c{n % 3}"}, prompt=str(n)) for n in range(12)]
        await asyncio.gather(*calls)
        rows = await running.rows("SELECT value, COUNT(*) AS count FROM request_labels GROUP BY value ORDER BY value")
        assert [(row["value"], row["count"]) for row in rows] == [("c0", 4), ("c1", 4), ("c2", 4)]
        [total] = await running.rows("SELECT SUM(cost) AS cost FROM requests")
        [spent] = await running.rows("SELECT SUM(spent) AS spent FROM label_spend")
        assert total["cost"] == spent["spent"] > 0
