"""What only some providers do: uploads before a job, several hosts, failures as HTTP errors, cancels in steps."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.providers.spec import (
    File,
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
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.values import FIRST_FRAME, LAST_FRAME, InputFile, OrgId
from tests.providers.recordings import ScriptedHttpClient, scripted_upstream

ORG = OrgId("org_1")

BASE_URL = "https://api.acme.example"
IMAGE = InputFile(b"pixels", "image/png", 64, 48)


def read(reply: Reply) -> Result:
    job = reply.json
    return Result(status=job["status"], ref={"id": job["id"], "place": job.get("place", "")}, message=job.get("why"))


def upload_form(image: InputFile) -> tuple[tuple[str, str | Upload], ...]:
    return ("image", Upload(image.data, image.content_type, "a.png")), ("keep", "no")


OP = Operation(
    task="edit",
    send="POST /jobs",
    poll="GET {place}",
    read=read,
    model_field=None,
    params=(
        passthrough("prompt"),
        converted("images", to="image", convert=lambda found: found[0].uploaded_name),
        converted("random_seed", to="seed", convert=lambda number: "drawn" if number in range(2**32) else "?"),
        passthrough("seed"),
    ),
)


def candidate(**changes: Any) -> Candidate:
    model = Model(id="acme/pen", upstream="pen", op=replace(OP, **changes), prices=())
    provider = Provider(slug="acme", name="Acme", docs="", base_url=BASE_URL, models=(model,), domain="acme.example")
    return Candidate(provider, model)


def request(**extras: Any) -> Request:
    return Request(task="edit", model="acme/pen", values={"prompt": "a hat"}, extras=extras)


def exchange(method: str, path: str, reply: dict[str, Any], **sent: Any) -> dict[str, Any]:
    return {"sent": {"method": method, "url": path if "://" in path else BASE_URL + path, **sent}, "reply": reply}


STARTED = {"json": {"id": "7", "status": "queued", "place": "https://eu.acme.example/jobs/7"}}
UPLOADED = [["image", {"filename": "a.png", "content_type": "image/png", "data": "pixels"}], ["keep", "no"]]
UPLOAD = ImageUpload(send="POST /uploads", form=upload_form, read=lambda reply: str(reply.json["name"]))


# -------------------------------------------------------------------------------------------------------------- uploads


async def test_input_images_are_uploaded_first_and_then_sent_by_name() -> None:
    script = ScriptedHttpClient(
        [
            exchange("POST", "/uploads", {"json": {"name": "p-1"}}, form=UPLOADED),
            exchange("POST", "/jobs", STARTED, body={"prompt": "a hat", "image": "p-1", "seed": "drawn"}),
        ]
    )
    result = await scripted_upstream(script).submit(
        candidate(image_upload=UPLOAD), request(), 1, {"images": [IMAGE]}, for_org=ORG
    )
    assert (result.ref["id"], script.left) == ("7", [])


async def test_uploaded_images_keep_the_roles_that_the_caller_stated() -> None:
    """The last frame is given first."""
    row = converted(
        "input_reference", to=("begin", "end"), convert=lambda found: tuple(each.uploaded_name for each in found)
    )
    op = {"task": "video", "image_upload": UPLOAD, "params": (passthrough("prompt"), row)}
    script = ScriptedHttpClient(
        [
            exchange("POST", "/uploads", {"json": {"name": "p-1"}}, form=UPLOADED),
            exchange("POST", "/uploads", {"json": {"name": "p-2"}}, form=UPLOADED),
            exchange("POST", "/jobs", STARTED, body={"prompt": "a hat", "begin": "p-2", "end": "p-1"}),
        ]
    )
    frames = [InputFile(b"pixels", "image/png", 64, 48, role) for role in (LAST_FRAME, FIRST_FRAME)]
    await scripted_upstream(script).submit(candidate(**op), request(), 1, {"input_reference": frames}, for_org=ORG)
    assert script.left == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"status": 413, "json": {}}, "rejected"),
        ({"status": 500, "json": {}}, "broken"),
        ({"json": {"nothing": "of it"}}, "unreadable"),
    ],
)
async def test_a_failed_upload_submits_no_job(reply: dict[str, Any], kind: str) -> None:
    script = ScriptedHttpClient([exchange("POST", "/uploads", reply, form=UPLOADED)])
    with pytest.raises(AttemptFailed) as caught:
        await scripted_upstream(script).submit(
            candidate(image_upload=UPLOAD), request(), 1, {"images": [IMAGE]}, for_org=ORG
        )
    assert caught.value.failure.kind == kind


async def test_a_random_seed_is_sent_unless_the_caller_gives_a_seed() -> None:
    script = ScriptedHttpClient([exchange("POST", "/jobs", STARTED, body={"prompt": "a hat", "seed": 5})])
    await scripted_upstream(script).submit(candidate(), request(seed=5), 1, {}, for_org=ORG)


# ------------------------------------------------------------------------------------------------------------ following


async def test_jobs_are_polled_on_other_hosts_of_the_domain() -> None:
    script = ScriptedHttpClient(
        [exchange("GET", "https://eu.acme.example/jobs/7", {"json": {"id": "7", "status": "queued"}})]
    )
    assert (
        await scripted_upstream(script).poll(candidate(), {"place": "https://eu.acme.example/jobs/7"})
    ).status == "queued"


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
async def test_jobs_are_not_polled_outside_the_domain(place: str) -> None:
    with pytest.raises(AttemptFailed, match="outside its own domain"):
        await scripted_upstream(ScriptedHttpClient([])).poll(candidate(), {"place": place})


async def test_a_provider_without_a_domain_has_one_host() -> None:
    alone = candidate()
    alone = replace(alone, provider=replace(alone.provider, domain=None))
    with pytest.raises(AttemptFailed, match="outside its own domain"):
        await scripted_upstream(ScriptedHttpClient([])).poll(alone, {"place": "https://eu.acme.example/jobs/7"})


async def test_parameters_of_the_provider_are_sent_with_every_request_to_it() -> None:
    versioned = candidate(cancel="DELETE /jobs/{id}?now=1")
    versioned = replace(versioned, provider=replace(versioned.provider, query={"api-version": "2 b"}))
    script = ScriptedHttpClient(
        [
            exchange("GET", "/jobs/7?api-version=2+b", {"json": {"id": "7", "status": "queued"}}),
            exchange("DELETE", "/jobs/7?now=1&api-version=2+b", {}),
        ]
    )
    upstream = scripted_upstream(script)
    assert (await upstream.poll(versioned, {"place": "/jobs/7"})).status == "queued"
    assert await upstream.cancel(versioned, {"id": "7"})
    assert upstream.download_source(versioned, File("/jobs/7/file")).url == f"{BASE_URL}/jobs/7/file?api-version=2+b"
    elsewhere = "https://cdn.example/a.png?signature=1"
    assert upstream.download_source(versioned, File(elsewhere)).url == elsewhere


async def test_a_job_failure_in_the_body_of_an_http_error_is_read() -> None:
    failed_job = {"status": 503, "json": {"id": "7", "status": "failed", "why": "no luck"}}
    script = ScriptedHttpClient([exchange("GET", "/jobs/7", failed_job)] * 2)
    result = await scripted_upstream(script).poll(candidate(read_http_errors=True), {"place": "/jobs/7"})
    assert (result.status, result.message) == ("failed", "no luck")
    with pytest.raises(AttemptFailed):
        await scripted_upstream(script).poll(candidate(), {"place": "/jobs/7"})


async def test_an_http_error_with_another_body_is_a_failed_call() -> None:
    script = ScriptedHttpClient([exchange("GET", "/jobs/7", {"status": 503, "json": {"detail": "busy"}})])
    with pytest.raises(AttemptFailed) as caught:
        await scripted_upstream(script).poll(candidate(read_http_errors=True), {"place": "/jobs/7"})
    assert caught.value.failure.kind == "down"


# -------------------------------------------------------------------------------------------------------------- ending


@pytest.mark.parametrize(("second", "taken"), [(200, True), (500, False)])
async def test_a_job_may_need_several_requests_to_cancel(second: int, taken: bool) -> None:
    body = {"delete": ["7"]}
    script = ScriptedHttpClient(
        [
            exchange("POST", "/queue", {}, body=body),
            exchange("POST", "/interrupt", {"status": second}, body=body),
        ]
    )
    changes = {"cancel": ("POST /queue", "POST /interrupt"), "cancel_body": lambda ref: {"delete": [ref["id"]]}}
    assert await scripted_upstream(script).cancel(candidate(**changes), {"id": "7"}) is taken


async def test_a_job_that_cannot_be_cancelled() -> None:
    assert not await scripted_upstream(ScriptedHttpClient([])).cancel(candidate(), {"id": "7"})


# ----------------------------------------------------------------------------------------------------------------- chat


async def test_each_chat_call_has_the_token_of_its_own_time() -> None:
    """A provider may make a token of the credential that expires after some minutes."""
    token = {"authorization": "first"}
    plain = candidate(task="chat", send="POST /chat")
    talking = replace(plain, provider=replace(plain.provider, auth=lambda key: dict(token)))
    sent = ("first", "first", "second")
    script = ScriptedHttpClient(
        [exchange("POST", "/chat", {"json": {}}, body={}, headers={"authorization": each}) for each in sent]
    )
    upstream = scripted_upstream(script)
    for token["authorization"] in sent:
        await upstream.send_chat(talking, {}, 60, for_org=ORG)
    assert not script.left
