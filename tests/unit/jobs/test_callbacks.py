"""Callbacks of providers: offered only over HTTPS, and believed only so far that the job is polled."""

import json
from base64 import b64encode
from collections import deque
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks import Webhook

from penstock.errors import PermissionDenied
from penstock.jobs.callbacks import ACCOUNT, is_signed
from penstock.net.checked_urls import check_media_url
from penstock.webhooks.events import sign
from tests.fake_providers import faults
from tests.gateway import Installation, OpenGateway, RunningGateway, postgres_only, sqlite_only

PUBLIC = "https://gateway.example"
SECRET = "whsec_" + b64encode(b"s" * 32).decode()


@pytest.fixture
def with_callbacks(installation: Installation) -> Installation:
    """A test installation whose provider takes the callback URL in the field `callback_url`."""
    installation.lab_settings |= {"callback_field": "callback_url", "callback_key_env": "LAB_WEBHOOK_KEY"}
    return installation


async def begun(running: RunningGateway, **body: Any) -> tuple[str, str]:
    """A video under way, and the callback URL that the provider was given."""
    running.lab.videos.next(faults.never_ends)
    video_id: str = (await running.video(**body)).json["id"]

    async def submitted() -> bool:
        return [row["state"] for row in await running.attempts(video_id)] == ["submitted"]

    await running.wait_until(submitted, step_seconds=0)
    return video_id, running.lab.videos.received[-1].fields["callback_url"]


def parts(address: str) -> tuple[str, str]:
    provider, token = address.removeprefix(f"{PUBLIC}/callbacks/").split("/")
    return provider, token


def finish(running: RunningGateway) -> None:
    job = running.lab.video_jobs[running.lab.invoice[-1].id]
    job.states = deque(["completed"])


async def polled(running: RunningGateway, count: int) -> None:
    async def met() -> bool:
        return len(running.lab.polls) >= count

    await running.wait_until(met, step_seconds=0)


# ----------------------------------------------------------------------------------------------------------- addresses


async def test_a_callback_polls_the_job_at_once(with_callbacks: Installation) -> None:
    """The clock does not move: without the callback the job would not be polled."""
    async with with_callbacks.open(public_url=PUBLIC) as running:
        video_id, address = await begun(running)
        assert check_media_url(address, "x") == address
        finish(running)
        await running.gateway.callbacks.receive(*parts(address), {}, b'{"status": "whatever"}')
        await polled(running, 1)

        async def ended() -> bool:
            return bool((await running.record(video_id))["status"] == "completed")

        await running.wait_until(ended, step_seconds=0)


@postgres_only
async def test_a_callback_that_arrives_at_another_process(with_callbacks: Installation) -> None:
    async with (
        with_callbacks.open(public_url=PUBLIC) as running,
        with_callbacks.open(public_url=PUBLIC, labs=(running.lab, running.annex), worker=False) as other,
    ):
        _, address = await begun(running)
        finish(running)
        await other.gateway.callbacks.receive(*parts(address), {}, b"{}")
        await polled(running, 1)


@sqlite_only
async def test_the_content_of_a_callback_is_not_believed(with_callbacks: Installation) -> None:
    async with with_callbacks.open(public_url=PUBLIC) as running:
        video_id, address = await begun(running)
        content = json.dumps({"status": "completed", "output": "https://evil.example/x.mp4"}).encode()
        for number in range(1, 4):
            await running.gateway.callbacks.receive(*parts(address), {}, content)
            await polled(running, number)
        assert (await running.get_video(video_id))["status"] == "in_progress"


@pytest.mark.parametrize("public_url", ["", "http://gateway.example"])
@sqlite_only
async def test_no_callback_url_without_public_https(with_callbacks: Installation, public_url: str) -> None:
    async with with_callbacks.open(public_url=public_url) as running:
        await running.video()
        await running.lab.videos.reached(1)
        assert "callback_url" not in running.lab.videos.received[0].fields


@sqlite_only
async def test_no_callback_url_for_a_provider_without_callbacks(open_gateway: OpenGateway) -> None:
    async with open_gateway(public_url=PUBLIC) as running:
        await running.video()
        await running.lab.videos.reached(1)
        assert "callback_url" not in running.lab.videos.received[0].fields


@sqlite_only
async def test_no_callback_url_for_an_immediate_result(with_callbacks: Installation) -> None:
    async with with_callbacks.open(public_url=PUBLIC) as running:
        await running.image()
        assert "callback_url" not in running.lab.images.received[0].fields


@sqlite_only
async def test_callback_urls_cannot_be_guessed(with_callbacks: Installation) -> None:
    async with with_callbacks.open(public_url=PUBLIC) as running:
        _, address = await begun(running)
        provider, token = parts(address)
        attempt_id, _, signature = token.partition("-")
        flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
        wrong = ["", "-", attempt_id, f"{attempt_id}-", f"{attempt_id}-{flipped}", f"x-{signature}", ACCOUNT, "é-é"]
        for other in wrong:
            with pytest.raises(PermissionDenied):
                await running.gateway.callbacks.receive(provider, other, {}, b"{}")
        for slug in ("annex", "", "nobody"):
            with pytest.raises(PermissionDenied):
                await running.gateway.callbacks.receive(slug, token, {}, b"{}")
        assert len(running.lab.polls) == 0


@sqlite_only
async def test_a_callback_after_the_end(with_callbacks: Installation) -> None:
    """After a success it changes nothing; after a failure the job is checked at once."""
    async with with_callbacks.open(public_url=PUBLIC, job_deadline_seconds=60) as running:
        running.lab.cancels.always(faults.rejected)
        video_id, address = await begun(running)
        await running.wait_for_request(video_id, step_seconds=2)
        (before,) = await running.rows("SELECT check_at_ms FROM attempts")
        await running.gateway.callbacks.receive(*parts(address), {}, b"{}")
        (after,) = await running.rows("SELECT check_at_ms FROM attempts")
        assert after["check_at_ms"] == running.clock.steady_ms() <= before["check_at_ms"]

        made, address = await begun(running)
        finish(running)
        await running.wait_for_request(made)
        await running.gateway.callbacks.receive(*parts(address), {}, b"{}")
        assert [row["check_at_ms"] for row in await running.attempts(made)] == [None]


# ---------------------------------------------------------------------------------------------------------- signatures


def signing(installation: Installation, secret: str = SECRET) -> Installation:
    installation.environ["LAB_WEBHOOK_KEY"] = secret
    return installation


def signed(body: bytes, at_ms: int, secret: str = SECRET, message_id: str = "msg_1") -> dict[str, str]:
    timestamp = at_ms // 1000
    signature = sign(secret, message_id, timestamp, body)
    return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": f"v1,zzz {signature}"}


@sqlite_only
async def test_a_provider_that_signs_must_sign(with_callbacks: Installation) -> None:
    """With the provider's secret in the environment the token in the URL is not enough."""
    async with signing(with_callbacks).open(public_url=PUBLIC) as running:
        _, address = await begun(running)
        receive, now = running.gateway.callbacks.receive, running.clock.now_ms()
        other = "whsec_" + b64encode(b"t" * 32).decode()
        late = [signed(b"{}", now + seconds * 1000) for seconds in (-301, 301)]
        refused: list[dict[str, str]] = [{}, signed(b"{}", now, other), signed(b"[]", now), *late]
        for headers in refused:
            with pytest.raises(PermissionDenied):
                await receive(*parts(address), headers, b"{}")
        assert len(running.lab.polls) == 0
        await receive(*parts(address), signed(b"{}", now), b"{}")
        await polled(running, 1)


@pytest.mark.parametrize("body", ['{"id": "NAME"}', '{"type": "video.completed", "data": {"id": "NAME"}}'])
@sqlite_only
async def test_one_callback_url_for_a_whole_account(with_callbacks: Installation, body: str) -> None:
    """As with OpenAI: the signature proves the sender, and the body names the job."""
    async with signing(with_callbacks).open(public_url=PUBLIC) as running:
        await begun(running)
        content = body.replace("NAME", running.lab.invoice[0].id).encode()
        await running.gateway.callbacks.receive("lab", ACCOUNT, signed(content, running.clock.now_ms()), content)
        await polled(running, 1)
        for odd in (b"", b"{}", b"[]", b'{"id": 7}', b'{"data": "x"}', b'{"id": "somebody-elses"}', b"[" * 100_000):
            await running.gateway.callbacks.receive("lab", ACCOUNT, signed(odd, running.clock.now_ms()), odd)
        assert len(running.lab.polls) == 1


def test_the_published_library_makes_valid_signatures() -> None:
    body = b'{"test": 2432232314}'
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    vector = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert is_signed(secret, vector, body, 1614265330)
    assert not is_signed(secret, vector, body + b" ", 1614265330)
    at = datetime(2026, 11, 15, 12, tzinfo=UTC)
    theirs = Webhook(secret).sign("msg_2", at, body.decode())
    headers = {"webhook-id": "msg_2", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": theirs}
    assert is_signed(secret, headers, body, int(at.timestamp()))


@pytest.mark.parametrize("timestamp", ["", "x", "-1", "1e9", "١٢٣", "9" * 5000])
def test_invalid_timestamps_are_refused(timestamp: str) -> None:
    assert not is_signed(SECRET, {"webhook-id": "m", "webhook-timestamp": timestamp}, b"", 1_700_000_000)


@pytest.mark.parametrize("secret", ["hunter2", "whsec_", "whsec_abc", "whsec_" + b64encode(b"short").decode()])
@sqlite_only
async def test_a_malformed_secret_is_refused(with_callbacks: Installation, secret: str) -> None:
    with pytest.raises(ValueError, match="callback secret of lab"):
        async with signing(with_callbacks, secret).open():
            pass


@pytest.mark.parametrize("timestamp", ["1" * 5000, "1" * 13, "", "-5", "1.5", "١٢٣", "1e9", " 1"])
def test_a_malformed_timestamp_is_not_signed(timestamp: str) -> None:
    headers = {"webhook-id": "msg_1", "webhook-timestamp": timestamp, "webhook-signature": "v1,x"}
    now = int(timestamp[:12]) if timestamp.isascii() and timestamp.isdigit() else 0
    assert not is_signed(SECRET, headers, b"{}", now)
