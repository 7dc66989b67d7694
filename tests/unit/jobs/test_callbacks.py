"""Callbacks of providers: offered only in private, believed only as far as that there may be news."""

import json
from base64 import b64encode
from collections import deque
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks import Webhook

from penstock.errors import PermissionDenied
from penstock.jobs.callbacks import ACCOUNT, verified
from penstock.net.guard import check_media_url
from penstock.webhooks.events import sign
from tests.house import Ground, House, OpenHouse, postgres_only, sqlite_only
from tests.upstreams import faults

PUBLIC = "https://gateway.example"
SECRET = "whsec_" + b64encode(b"s" * 32).decode()


@pytest.fixture
def told(ground: Ground) -> Ground:
    """A ground whose lab takes our address in `callback_url`."""
    ground.words |= {"callback_field": "callback_url", "callback_key_env": "LAB_WEBHOOK_KEY"}
    return ground


async def begun(house: House, **body: Any) -> tuple[str, str]:
    """A video under way, and the address that the vendor was given."""
    house.lab.videos.next(faults.never_ends)
    video_id: str = (await house.video(**body)).json["id"]

    async def submitted() -> bool:
        return [row["state"] for row in await house.attempts(video_id)] == ["submitted"]

    await house.until(submitted, step_seconds=0)
    return video_id, house.lab.videos.heard[-1].fields["callback_url"]


def parts(address: str) -> tuple[str, str]:
    provider, token = address.removeprefix(f"{PUBLIC}/callbacks/").split("/")
    return provider, token


def finish(house: House) -> None:
    film = house.lab.films[house.lab.invoice[-1].id]
    film.states = deque(["completed"])


async def polled(house: House, count: int) -> None:
    async def met() -> bool:
        return len(house.lab.polls) >= count

    await house.until(met, step_seconds=0)


# ----------------------------------------------------------------------------------------------------------- addresses


async def test_a_callback_has_the_job_asked_about_at_once(told: Ground) -> None:
    """Time stands still: without it nobody would look."""
    async with told.open(public_url=PUBLIC) as house:
        video_id, address = await begun(house)
        assert check_media_url(address, "x") == address
        finish(house)
        await house.gateway.callbacks.receive(*parts(address), {}, b'{"status": "whatever"}')
        await polled(house, 1)

        async def ended() -> bool:
            return bool((await house.record(video_id))["status"] == "completed")

        await house.until(ended, step_seconds=0)


@postgres_only
async def test_a_callback_that_arrives_elsewhere(told: Ground) -> None:
    async with (
        told.open(public_url=PUBLIC) as house,
        told.open(public_url=PUBLIC, labs=(house.lab, house.annex), worker=False) as other,
    ):
        _, address = await begun(house)
        finish(house)
        await other.gateway.callbacks.receive(*parts(address), {}, b"{}")
        await polled(house, 1)


@sqlite_only
async def test_what_it_says_is_not_believed(told: Ground) -> None:
    async with told.open(public_url=PUBLIC) as house:
        video_id, address = await begun(house)
        news = json.dumps({"status": "completed", "output": "https://evil.example/x.mp4"}).encode()
        for number in range(1, 4):
            await house.gateway.callbacks.receive(*parts(address), {}, news)
            await polled(house, number)
        assert (await house.shown(video_id))["status"] == "in_progress"


@pytest.mark.parametrize("public_url", ["", "http://gateway.example"])
@sqlite_only
async def test_not_offered_where_others_could_read_it(told: Ground, public_url: str) -> None:
    async with told.open(public_url=public_url) as house:
        await house.video()
        await house.lab.videos.reached(1)
        assert "callback_url" not in house.lab.videos.heard[0].fields


@sqlite_only
async def test_not_offered_to_who_does_not_know_how(open_house: OpenHouse) -> None:
    async with open_house(public_url=PUBLIC) as house:
        await house.video()
        await house.lab.videos.reached(1)
        assert "callback_url" not in house.lab.videos.heard[0].fields


@sqlite_only
async def test_not_offered_for_what_is_answered_at_once(told: Ground) -> None:
    async with told.open(public_url=PUBLIC) as house:
        await house.image()
        assert "callback_url" not in house.lab.images.heard[0].fields


@sqlite_only
async def test_addresses_are_not_guessed(told: Ground) -> None:
    async with told.open(public_url=PUBLIC) as house:
        _, address = await begun(house)
        provider, token = parts(address)
        attempt_id, _, signature = token.partition("-")
        flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
        wrong = ["", "-", attempt_id, f"{attempt_id}-", f"{attempt_id}-{flipped}", f"x-{signature}", ACCOUNT, "é-é"]
        for other in wrong:
            with pytest.raises(PermissionDenied):
                await house.gateway.callbacks.receive(provider, other, {}, b"{}")
        for slug in ("annex", "", "nobody"):
            with pytest.raises(PermissionDenied):
                await house.gateway.callbacks.receive(slug, token, {}, b"{}")
        assert len(house.lab.polls) == 0


@sqlite_only
async def test_a_callback_after_the_end(told: Ground) -> None:
    """Of one that succeeded it changes nothing; of one that was given up it hastens the question."""
    async with told.open(public_url=PUBLIC, job_deadline_seconds=60) as house:
        house.lab.cancels.always(faults.rejected)
        video_id, address = await begun(house)
        await house.ended(video_id, step_seconds=10)
        (before,) = await house.rows("SELECT ask_at_ms FROM attempts")
        await house.gateway.callbacks.receive(*parts(address), {}, b"{}")
        (after,) = await house.rows("SELECT ask_at_ms FROM attempts")
        assert after["ask_at_ms"] == house.clock.steady_ms() <= before["ask_at_ms"]

        made, address = await begun(house)
        finish(house)
        await house.ended(made)
        await house.gateway.callbacks.receive(*parts(address), {}, b"{}")
        assert [row["ask_at_ms"] for row in await house.attempts(made)] == [None]


# ---------------------------------------------------------------------------------------------------------- signatures


def signing(ground: Ground, secret: str = SECRET) -> Ground:
    ground.environ["LAB_WEBHOOK_KEY"] = secret
    return ground


def signed(body: bytes, at_ms: int, secret: str = SECRET, message_id: str = "msg_1") -> dict[str, str]:
    timestamp = at_ms // 1000
    signature = sign(secret, message_id, timestamp, body)
    return {"webhook-id": message_id, "webhook-timestamp": str(timestamp), "webhook-signature": f"v1,zzz {signature}"}


@sqlite_only
async def test_who_signs_must(told: Ground) -> None:
    """With the vendor's secret in the environment the token alone is not enough."""
    async with signing(told).open(public_url=PUBLIC) as house:
        _, address = await begun(house)
        receive, now = house.gateway.callbacks.receive, house.clock.now_ms()
        other = "whsec_" + b64encode(b"t" * 32).decode()
        late = [signed(b"{}", now + seconds * 1000) for seconds in (-301, 301)]
        refused: list[dict[str, str]] = [{}, signed(b"{}", now, other), signed(b"[]", now), *late]
        for headers in refused:
            with pytest.raises(PermissionDenied):
                await receive(*parts(address), headers, b"{}")
        assert len(house.lab.polls) == 0
        await receive(*parts(address), signed(b"{}", now), b"{}")
        await polled(house, 1)


@pytest.mark.parametrize("body", ['{"id": "NAME"}', '{"type": "video.completed", "data": {"id": "NAME"}}'])
@sqlite_only
async def test_one_address_for_a_whole_account(told: Ground, body: str) -> None:
    """As OpenAI has it: the signature is the proof, and the body says which job."""
    async with signing(told).open(public_url=PUBLIC) as house:
        await begun(house)
        news = body.replace("NAME", house.lab.invoice[0].id).encode()
        await house.gateway.callbacks.receive("lab", ACCOUNT, signed(news, house.clock.now_ms()), news)
        await polled(house, 1)
        for odd in (b"", b"{}", b"[]", b'{"id": 7}', b'{"data": "x"}', b'{"id": "somebody-elses"}', b"[" * 100_000):
            await house.gateway.callbacks.receive("lab", ACCOUNT, signed(odd, house.clock.now_ms()), odd)
        assert len(house.lab.polls) == 1


def test_the_library_agrees() -> None:
    body = b'{"test": 2432232314}'
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    vector = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert verified(secret, vector, body, 1614265330)
    assert not verified(secret, vector, body + b" ", 1614265330)
    at = datetime(2026, 11, 15, 12, tzinfo=UTC)
    theirs = Webhook(secret).sign("msg_2", at, body.decode())
    headers = {"webhook-id": "msg_2", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": theirs}
    assert verified(secret, headers, body, int(at.timestamp()))


@pytest.mark.parametrize("timestamp", ["", "x", "-1", "1e9", "١٢٣", "9" * 5000])
def test_odd_timestamps(timestamp: str) -> None:
    assert not verified(SECRET, {"webhook-id": "m", "webhook-timestamp": timestamp}, b"", 1_700_000_000)


@pytest.mark.parametrize("secret", ["hunter2", "whsec_", "whsec_abc", "whsec_" + b64encode(b"short").decode()])
@sqlite_only
async def test_a_secret_that_is_none(told: Ground, secret: str) -> None:
    with pytest.raises(ValueError, match="callbacks of lab"):
        async with signing(told, secret).open():
            pass
