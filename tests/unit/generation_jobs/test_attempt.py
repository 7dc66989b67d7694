"""One attempt: what each kind of failure means for the caller, the money and the next provider."""

import asyncio
from decimal import Decimal

import pytest

from penstock.errors import ContentPolicyViolation, UpstreamError, UpstreamTimeout
from penstock.upstream.failures import AttemptFailed, Failure
from penstock.values import nanos
from tests.fake_providers import faults
from tests.fake_providers.server import Act
from tests.gateway import OpenGateway, sqlite_only
from tests.loop_time import pass_time
from tests.unit.generations.failing import UNTOUCHED, failure, named

# --------------------------------------------------------------------------------------------------------- submissions

# The provider says that nothing was made: the next one may be tried.
CERTAIN = {
    "busy": faults.busy(),
    "broken": faults.broken,
    "unauthorized": faults.unauthorized,
    "rejected": faults.rejected,
    "forbidden": faults.error(403, "No."),
    "unpaid": faults.error(402, "Pay first."),
    "redirect": faults.redirect("http://127.0.0.1:1/"),
    "unavailable": faults.error(503, "Overloaded."),
}
# It is not known whether something was made.
UNKNOWN = {
    "dropped": faults.dropped,
    "truncated": faults.truncated(),
    "huge": faults.huge(70),
    "huge and announced": faults.huge(70, announced=True),
}
# A job may have been started; an image was not delivered.
MALFORMED = {
    "nonsense": faults.nonsense,
    "page": faults.page,
    "not a number": faults.not_a_number,
    "nested": faults.nested,
    "lone surrogate": faults.lone_surrogate,
    "not an object": faults.not_an_object,
    "no response": faults.no_response,
    "odd types": faults.odd_types,
    "gateway timeout": faults.raw(b"<html>504</html>", "text/html", 504),
    "bad gateway": faults.raw(b"", "text/plain", 502),
}


@named(CERTAIN)
@sqlite_only
async def test_a_certain_failure_lets_the_next_provider_try(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.always(act)
        running.lab.videos.always(act)
        made = await running.image()
        assert made["metadata"]["provider"] == "annex"
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["metadata"]["executed_model"]) == ("completed", "annex/reel-1")
        assert running.lab.invoice == []
        assert await running.money() == (nanos("9.56"), 0)


@named(UNKNOWN | MALFORMED)
@sqlite_only
async def test_a_video_with_unknown_outcome_is_not_sent_elsewhere(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(act)
        done = await running.wait_for_video((await running.video()).json["id"])
        assert (done["status"], done["error"]["code"]) == ("failed", "UPSTREAM_OUTCOME_UNKNOWN")
        assert (len(running.lab.videos), len(running.annex.videos)) == (1, 0)
        assert await running.money() == UNTOUCHED


@named(UNKNOWN)
@sqlite_only
async def test_an_image_with_unknown_outcome_is_not_sent_elsewhere(open_gateway: OpenGateway, act: Act) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.next(act)
        problem = await failure(running)
        assert isinstance(problem, UpstreamError)
        assert (problem.status, problem.should_retry) == (502, False)
        assert running.annex.submits == 0
        assert await running.money() == UNTOUCHED


@named(MALFORMED)
@sqlite_only
async def test_a_malformed_image_is_a_provider_failure(open_gateway: OpenGateway, act: Act) -> None:
    """It is reported as the provider's failure and not charged, and the next call is served."""
    async with open_gateway() as running:
        running.lab.images.next(act)
        problem = await failure(running)
        assert (problem.status, problem.should_retry) == (502, False)
        assert await running.money() == UNTOUCHED
        assert await running.image()


@sqlite_only
async def test_json_with_the_wrong_content_type_is_read(open_gateway: OpenGateway) -> None:
    """Many servers send JSON with a wrong content type."""
    async with open_gateway() as running:
        running.lab.images.next(faults.mislabelled)
        assert await running.image()


@sqlite_only
async def test_an_image_provider_that_never_responds(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, upstream_seconds=60) as running:
        running.lab.images.next(faults.stalled)
        failing = asyncio.create_task(failure(running))
        await running.lab.images.reached(1)
        pass_time(61)
        problem = await failing
        assert isinstance(problem, UpstreamTimeout)
        assert (problem.status, problem.should_retry) == (504, False)
        assert running.annex.submits == 0
        assert await running.money() == UNTOUCHED


async def test_a_video_provider_that_never_responds(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, upstream_seconds=60) as running:
        running.lab.videos.next(faults.stalled)
        video_id = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        assert (await running.get_video(video_id))["status"] == "queued"
        pass_time(61)
        done = await running.wait_for_video(video_id)
        assert done["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert running.annex.submits == 0


@sqlite_only
async def test_a_video_refused_for_its_content(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(faults.blocked, faults.is_refused)
        for _ in range(2):
            done = await running.wait_for_video((await running.video()).json["id"])
            assert done["error"]["code"] == "CONTENT_POLICY_VIOLATION"
        assert running.annex.submits == 0


async def test_a_job_with_the_id_of_another_job_has_an_unknown_outcome(open_gateway: OpenGateway) -> None:
    """The second job cannot be told from the first."""
    async with open_gateway() as running:
        act = faults.video_states("queued", "in_progress", "completed", name="video_same")
        running.lab.videos.next(act, act)
        first = (await running.video()).json["id"]
        await running.lab.videos.reached(1)
        second = (await running.video()).json["id"]
        assert (await running.wait_for_video(second))["error"]["code"] == "UPSTREAM_OUTCOME_UNKNOWN"
        assert (await running.wait_for_video(first))["status"] == "completed"
        assert await running.money() == (nanos("9.6"), 0)


async def test_immediate_results_may_share_an_upstream_id(open_gateway: OpenGateway) -> None:
    """Results that are complete are not asked about; some providers give all of them the same id."""
    async with open_gateway() as running:
        running.lab.next_ids.extend(["same", "same"])
        made = [await running.image(), await running.image()]
        assert [response["metadata"]["upstream_id"] for response in made] == ["same", "same"]


@sqlite_only
async def test_the_usage_that_a_provider_reports_is_charged(open_gateway: OpenGateway) -> None:
    """Seconds and tokens as reported; malformed reports are ignored."""
    price = {"unit": "token", "output_usd": "0.0001", "max_tokens": 1000}
    async with open_gateway(models={"image-1": {"price": price}}) as running:
        for usage, cost in (
            ({"input_tokens": 1, "output_tokens": 10}, "0.001"),
            ({"input_tokens": 1, "output_tokens": -10}, "0.1"),
            ({"input_tokens": 1, "output_tokens": "many"}, "0.1"),
            ({"input_tokens": 1, "output_tokens": 10**30}, "0.1"),
        ):
            running.lab.usage = usage
            assert (await running.image())["metadata"]["cost"] == Decimal(cost), usage


@sqlite_only
async def test_what_a_provider_bills_for_a_failure_is_a_loss(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def submit(*_: object, **__: object) -> None:
        raise AttemptFailed(Failure("refused", "no", cost_usd="0.02"))

    async with open_gateway() as running:
        monkeypatch.setattr(running.gateway.upstream, "submit", submit)
        with pytest.raises(ContentPolicyViolation):
            await running.image()
        (attempt,) = await running.rows("SELECT id FROM attempts")
        assert (await running.transfers(attempt["id"]))["loss"] == nanos("0.02")
