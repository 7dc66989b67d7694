"""Ways of providers: pictures left beforehand, jobs ended by several requests, failures told as errors, many hosts."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.providers.spec import (
    ImageUpload,
    Model,
    Operation,
    Provider,
    Reply,
    Result,
    Upload,
    converted,
    passthrough,
)
from penstock.schema import Request
from penstock.upstream.catalog import Candidate
from penstock.upstream.client import AttemptFailed
from penstock.values import InputImage
from tests.providers.recordings import Script, carrier

HOME = "https://api.acme.example"
PICTURE = InputImage(b"pixels", "image/png", 64, 48)


def read(reply: Reply) -> Result:
    job = reply.json
    return Result(status=job["status"], ref={"id": job["id"], "place": job.get("place", "")}, message=job.get("why"))


def leave(reference: InputImage) -> tuple[tuple[str, str | Upload], ...]:
    return ("image", Upload(reference.data, reference.content_type, "a.png")), ("keep", "no")


OP = Operation(
    task="edit",
    send="POST /jobs",
    poll="GET {place}",
    read=read,
    model_field=None,
    params=(
        passthrough("prompt"),
        converted("images", to="picture", convert=lambda found: found[0].name),
        converted("random_seed", to="seed", convert=lambda number: "drawn" if number in range(2**32) else "?"),
        passthrough("seed"),
    ),
)


def option(**ways: Any) -> Candidate:
    model = Model(id="acme/pen", upstream="pen", op=replace(OP, **ways), prices=())
    provider = Provider(slug="acme", name="Acme", docs="", base_url=HOME, models=(model,), domain="acme.example")
    return Candidate(provider, model)


def request(**extras: Any) -> Request:
    return Request(task="edit", model="acme/pen", values={"prompt": "a hat"}, extras=extras)


def exchange(method: str, path: str, reply: dict[str, Any], **sent: Any) -> dict[str, Any]:
    return {"sent": {"method": method, "url": path if "://" in path else HOME + path, **sent}, "reply": reply}


STARTED = {"json": {"id": "7", "status": "queued", "place": "https://eu.acme.example/jobs/7"}}
LEFT = [["image", {"filename": "a.png", "content_type": "image/png", "data": "pixels"}], ["keep", "no"]]
DEPOSIT = ImageUpload(send="POST /pictures", form=leave, read=lambda reply: str(reply.json["name"]))


# ------------------------------------------------------------------------------------------------------------- deposits


async def test_pictures_are_left_first_and_then_known_by_name() -> None:
    script = Script(
        [
            exchange("POST", "/pictures", {"json": {"name": "p-1"}}, form=LEFT),
            exchange("POST", "/jobs", STARTED, body={"prompt": "a hat", "picture": "p-1", "seed": "drawn"}),
        ]
    )
    result = await carrier(script).submit(option(image_upload=DEPOSIT), request(), 1, {"images": [PICTURE]})
    assert (result.ref["id"], script.left) == ("7", [])


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"status": 413, "json": {}}, "rejected"),
        ({"status": 500, "json": {}}, "broken"),
        ({"json": {"nothing": "of it"}}, "unreadable"),
    ],
)
async def test_a_picture_that_is_not_taken_begins_nothing(reply: dict[str, Any], kind: str) -> None:
    script = Script([exchange("POST", "/pictures", reply, form=LEFT)])
    with pytest.raises(AttemptFailed) as caught:
        await carrier(script).submit(option(image_upload=DEPOSIT), request(), 1, {"images": [PICTURE]})
    assert caught.value.kind == kind


async def test_luck_is_drawn_unless_the_caller_has_some() -> None:
    script = Script([exchange("POST", "/jobs", STARTED, body={"prompt": "a hat", "seed": 5})])
    await carrier(script).submit(option(), request(seed=5), 1, {})


# ------------------------------------------------------------------------------------------------------------ following


async def test_jobs_are_followed_within_the_domain() -> None:
    script = Script([exchange("GET", "https://eu.acme.example/jobs/7", {"json": {"id": "7", "status": "queued"}})])
    assert (await carrier(script).poll(option(), {"place": "https://eu.acme.example/jobs/7"})).status == "queued"


@pytest.mark.parametrize(
    "place",
    [
        "https://acme.example.evil.example/x",
        "https://evilacme.example/x",
        "http://eu.acme.example/x",
        "https://eu.acme.example:8443/x",
        "https://evil.example\\.acme.example/x",
        "https://evil.example/.acme.example/",
        "https://you@eu.acme.example/x",
    ],
)
async def test_and_not_further(place: str) -> None:
    with pytest.raises(AttemptFailed, match="outside its own domain"):
        await carrier(Script([])).poll(option(), {"place": place})


async def test_a_provider_without_a_domain_has_one_home() -> None:
    alone = option()
    alone = replace(alone, provider=replace(alone.provider, domain=None))
    with pytest.raises(AttemptFailed, match="outside its own domain"):
        await carrier(Script([])).poll(alone, {"place": "https://eu.acme.example/jobs/7"})


async def test_a_failure_told_with_an_http_error_is_a_verdict() -> None:
    told = {"status": 503, "json": {"id": "7", "status": "failed", "why": "no luck"}}
    script = Script([exchange("GET", "/jobs/7", told)] * 2)
    result = await carrier(script).poll(option(read_http_errors=True), {"place": "/jobs/7"})
    assert (result.status, result.message) == ("failed", "no luck")
    with pytest.raises(AttemptFailed):
        await carrier(script).poll(option(), {"place": "/jobs/7"})


async def test_an_http_error_that_tells_nothing_stays_one() -> None:
    script = Script([exchange("GET", "/jobs/7", {"status": 503, "json": {"detail": "busy"}})])
    with pytest.raises(AttemptFailed) as caught:
        await carrier(script).poll(option(read_http_errors=True), {"place": "/jobs/7"})
    assert caught.value.kind == "broken"


# -------------------------------------------------------------------------------------------------------------- ending


@pytest.mark.parametrize(("second", "taken"), [(200, True), (500, False)])
async def test_a_job_may_need_several_requests_to_end(second: int, taken: bool) -> None:
    body = {"delete": ["7"]}
    script = Script(
        [
            exchange("POST", "/queue", {}, body=body),
            exchange("POST", "/interrupt", {"status": second}, body=body),
        ]
    )
    ways = {"cancel": ("POST /queue", "POST /interrupt"), "cancel_body": lambda ref: {"delete": [ref["id"]]}}
    assert await carrier(script).cancel(option(**ways), {"id": "7"}) is taken


async def test_a_job_that_cannot_be_ended() -> None:
    assert not await carrier(Script([])).cancel(option(), {"id": "7"})
