"""Refused calls, dry runs, imports and bad keys are limited, too."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from penstock.api import rates
from penstock.api.asgi import AsgiApp
from penstock.gateway import Gateway
from tests.api.accounts import first_account, opened
from tests.api.raw_http import Server, serving
from tests.manual_clock import ManualClock

IMAGES = "/compat/v1/images/generations"
UNKNOWN = {"prompt": "fox", "model": "no/such"}
DRAWN = {"prompt": "fox", "model": "atelier/sketch"}


async def limited_key(gateway: Gateway, requests_per_minute: int) -> str:
    account = await first_account(gateway)
    key = await gateway.keys.create_key(account.org_id, requests_per_minute=requests_per_minute)
    return key.key


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (IMAGES, UNKNOWN, 404),
        (IMAGES, {}, 400),
        (f"{IMAGES}?dryRun=true", DRAWN, 200),
        ("/v1/recordings", {}, 400),
        ("/compat/v1/chat/completions", {}, 400),
        ("/compat/v1/videos", {}, 400),
    ],
)
async def test_every_call_that_costs_work_counts(tmp_path: Path, path: str, body: object, status: int) -> None:
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = await limited_key(gateway, 3)
        for _ in range(2):
            statuses = [(await served.call("POST", path, key=key, body=body)).status for _ in range(5)]
            assert statuses == [status] * 3 + [429] * 2
            clock.advance(61)


async def test_a_call_over_the_limit_is_refused_before_its_body_is_read(tmp_path: Path) -> None:
    async with opened(tmp_path, clock=ManualClock()) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        key = await limited_key(gateway, 1)
        await served.call("POST", IMAGES, key=key, body=UNKNOWN)
        response = await served.call("POST", IMAGES, key=key, headers={"content-length": "1000000"})
        assert (response.status, response.headers["x-should-retry"]) == (429, "true")
        assert response.headers["x-ratelimit-limit-requests"] == "1"
        assert (await served.call("GET", "/v1/balance", key=key)).status == 200, "reading is not limited"


async def test_refusals_are_recorded_up_to_a_number_per_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.api.asgi.RECORDED_REFUSALS_PER_MINUTE", 3)
    clock = ManualClock()
    async with opened(tmp_path, clock=clock) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        mine = await first_account(gateway)

        async def refuse(key: str, count: int) -> int:
            for _ in range(count):
                assert (await served.call("POST", IMAGES, key=key, body=UNKNOWN)).status == 404
            listed = await served.call("GET", "/v1/requests?summary=true", key=key)
            assert listed.json["summary"]["count"] == len(listed.json["data"])
            return len(listed.json["data"])

        with capture_logs() as lines:
            assert await refuse(mine.plain.key, 5) == 3
            assert await refuse(mine.admin.key, 5) == 6  # the other key has its own number
            clock.advance(61)
            assert await refuse(mine.plain.key, 1) == 7
        said = [line["key_id"] for line in lines if line["event"].startswith("refusals of this key are not recorded")]
        assert said == [mine.plain.row.id, mine.admin.row.id], "each is said once"


async def test_only_refused_generations_are_recorded(tmp_path: Path) -> None:
    """The list of requests shows images, videos and chats; other calls would drown them, and no limit counts those."""
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        mine = await first_account(gateway)
        for method, path, body in (
            ("POST", "/v1/keys", {"name": 7}),
            ("POST", "/v1/recordings", {}),
            ("GET", "/v1/requests/req_none", None),
            ("GET", "/compat/v1/models/no/such", None),
            ("GET", "/nowhere", None),
            ("POST", IMAGES, UNKNOWN),
        ):
            assert (await served.call(method, path, key=mine.admin.key, body=body)).status in (400, 404), path
        listed = await served.call("GET", "/v1/requests", key=mine.admin.key)
        assert [request["endpoint"] for request in listed.json["data"]] == [IMAGES]


async def test_bad_keys_are_limited_per_address_and_good_ones_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "BAD_KEYS_PER_MINUTE", 3)
    clock = ManualClock()
    async with (
        opened(tmp_path, clock=clock, trusted_proxies=("127.0.0.1",)) as gateway,
        serving(AsgiApp(gateway), gateway.settings) as served,
    ):
        mine = await first_account(gateway)
        assert await bad_keys(served, "203.0.113.9", 5) == [401, 401, 401, 429, 429]
        assert await bad_keys(served, "203.0.113.8", 1) == [401]
        headers = {"x-forwarded-for": "203.0.113.9"}
        assert (await served.call("GET", "/v1/balance", key=mine.plain.key, headers=headers)).status == 200
        assert await bad_keys(served, "2001:db8::1", 2) == [401, 401]
        assert await bad_keys(served, "2001:db8::2", 2) == [401, 429], "a client has a whole network of IPv6"
        clock.advance(61)
        assert await bad_keys(served, "203.0.113.9", 1) == [401]


async def bad_keys(served: Server, address: str, count: int) -> list[int]:
    headers = {"x-forwarded-for": address}
    return [(await served.call("GET", "/v1/balance", key="wrong", headers=headers)).status for _ in range(count)]


async def test_calls_with_too_many_bad_keys_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whose they are: a stranger could have the gateway write and log as often as it is called."""
    monkeypatch.setattr(rates, "BAD_KEYS_PER_MINUTE", 1)
    async with opened(tmp_path) as gateway, serving(AsgiApp(gateway), gateway.settings) as served:
        with capture_logs() as logs:
            statuses = [(await served.call("POST", IMAGES, key="wrong", body=UNKNOWN)).status for _ in range(3)]
    assert statuses == [401, 429, 429]
    assert [line["event"] for line in logs if line["log_level"] != "info"] == []
