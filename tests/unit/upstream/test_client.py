"""Submitting, polling and cancelling at a provider, and what each kind of bad reply leads to."""

from dataclasses import replace

import pytest

from penstock.providers.spec import File, Result
from penstock.schema import Request
from penstock.store.base import Dialect
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.values import OrgId
from tests.fake_providers import faults
from tests.fake_providers.scripted import KEY
from tests.fake_providers.server import Act
from tests.gateway import OpenGateway, RunningGateway

ORG = OrgId("org_1")

IMAGE = Request(task="image", model="image-1", values={"prompt": "a pear", "size": "64x64"})
VIDEO = Request(task="video", model="video-1", values={"prompt": "a train", "seconds": 4})


@pytest.fixture
def dialect() -> Dialect:
    """The database has no part in this."""
    return "sqlite"


def candidate(running: RunningGateway, model: str = "image-1") -> Candidate:
    task = "video" if model == "video-1" else "image"
    return running.gateway.routing.route(model, (task,), running.caller.org_id).first


async def submit(running: RunningGateway, request: Request = IMAGE) -> Result:
    return await running.gateway.upstream.submit(candidate(running, request.model), request, 1, {}, for_org=ORG)


# ----------------------------------------------------------------------------------------------------------- submitting


async def test_submit_an_image(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        result = await submit(running)
        assert (result.status, len(result.files)) == ("completed", 1)
        received = running.lab.images.received[0]
        assert received.key == KEY
        assert received.fields == {"model": "easel-1", "prompt": "a pear", "size": "64x64", "n": 1}


async def test_submit_poll_and_cancel_a_job(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        upstream, video = running.gateway.upstream, candidate(running, "video-1")
        result = await submit(running, VIDEO)
        assert (result.status, result.ref) == ("queued", {"id": next(iter(running.lab.video_jobs))})
        assert [(await upstream.poll(video, result.ref)).status for _ in range(2)] == ["in_progress", "completed"]
        source = upstream.download_source(video, (await upstream.poll(video, result.ref)).files[0])
        assert source.trusted
        assert source.headers["authorization"] == f"Bearer {KEY}"
        assert await upstream.cancel(video, result.ref) is True
        assert await upstream.cancel(video, result.ref) is False, "it is gone"


@pytest.mark.parametrize(
    ("act", "kind", "retry_after_seconds"),
    [
        (faults.busy(7), "busy", 7),
        (faults.busy(10**6), "busy", 120),
        (faults.busy(), "busy", None),
        (faults.broken, "broken", None),
        (faults.unauthorized, "broken", None),
        (faults.blocked, "refused", None),
        (faults.rejected, "rejected", None),
        (faults.empty, "unreadable", None),
        (faults.page, "unreadable", None),
        (faults.redirect("https://elsewhere.example/"), "broken", None),
    ],
)
async def test_failures_of_a_submission(
    open_gateway: OpenGateway, act: Act, kind: str, retry_after_seconds: float | None
) -> None:
    async with open_gateway(works=False) as running:
        running.lab.images.next(act)
        with pytest.raises(AttemptFailed) as caught:
            await submit(running)
        failure = caught.value.failure
        assert (failure.kind, failure.sent, failure.unknown) == (kind, True, False)
        assert failure.retry_after_seconds == retry_after_seconds
        assert KEY not in failure.message


@pytest.mark.parametrize(
    "act",
    [
        faults.dropped,
        faults.truncated(),
        faults.nonsense,
        faults.page,
        faults.raw(b"", "text/plain", 504),
        faults.altered(id=None),
        faults.altered(id=7),
        faults.altered(status="dancing"),
    ],
)
async def test_submissions_of_jobs_with_an_unknown_outcome(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(works=False) as running:
        running.lab.videos.next(act)
        with pytest.raises(AttemptFailed) as caught:
            await submit(running, VIDEO)
        assert caught.value.failure.unknown


async def test_a_proxy_status_with_the_providers_own_message_is_a_failure(open_gateway: OpenGateway) -> None:
    """The message shows that the provider itself responded."""
    async with open_gateway(works=False) as running:
        running.lab.videos.next(faults.error(502, "No machine is free."))
        with pytest.raises(AttemptFailed, match="No machine is free") as caught:
            await submit(running, VIDEO)
        assert not caught.value.failure.unknown


async def test_a_failed_poll_does_not_end_the_job(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        result = await submit(running, VIDEO)
        for act in (faults.broken, faults.dropped, faults.page, faults.nonsense, faults.missing):
            running.lab.polls.next(act)
            with pytest.raises(AttemptFailed):
                await running.gateway.upstream.poll(candidate(running, "video-1"), result.ref)


async def test_polls_may_be_read_by_another_function(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        video = candidate(running, "video-1")
        op = replace(video.model.op, read_poll=lambda reply: Result(status="failed", message=reply.json["id"]))
        target = replace(video, model=replace(video.model, op=op))
        result = await running.gateway.upstream.submit(target, VIDEO, 1, {}, for_org=ORG)
        assert result.status == "queued"
        assert (await running.gateway.upstream.poll(target, result.ref)).message == result.ref["id"]


async def test_a_self_hosted_server_gets_its_key_for_files_at_its_own_address(open_gateway: OpenGateway) -> None:
    """LocalAI with a key returns URLs of images that need the key as well."""
    async with open_gateway(works=False) as running:
        upstream, image = running.gateway.upstream, candidate(running)
        own = File(url=f"{image.provider.base_url}/generated-images/x.png")
        hosted = replace(image, provider=replace(image.provider, self_hosted=True))
        elsewhere = replace(image, provider=replace(image.provider, self_hosted=False))
        assert upstream.download_source(hosted, own).headers == {"authorization": f"Bearer {KEY}"}
        assert upstream.download_source(hosted, File(url="https://cdn.test/x.png")).headers == {}
        assert upstream.download_source(elsewhere, own).headers == {}


async def test_credentials_are_sent_only_to_hosts_of_the_provider(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        upstream, video = running.gateway.upstream, candidate(running, "video-1")
        assert upstream.download_source(video, File(url="https://cdn.example/x.mp4")).headers == {}
        with pytest.raises(AttemptFailed, match="outside its own domain"):
            upstream.download_source(video, File(url="https://cdn.example/x.mp4", private=True))
        moved = replace(video, model=replace(video.model, op=replace(video.model.op, poll="GET {where}")))
        with pytest.raises(AttemptFailed, match="outside its own domain"):
            await upstream.poll(moved, {"where": "https://evil.example/steal"})


async def test_cancel_without_a_way_to_cancel_returns_false(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False) as running:
        video = candidate(running, "video-1")
        without_cancel = replace(video, model=replace(video.model, op=replace(video.model.op, cancel=None)))
        assert await running.gateway.upstream.cancel(without_cancel, {"id": "x"}) is False
