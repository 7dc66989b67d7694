"""Query parameters and headers of generations are those of the interface."""

from typing import Any

import msgspec
import pytest

from penstock.api.endpoints.generations import DRY_RUN, REPLAY, VIDEOS_QUERY, list_videos
from penstock.api.responses import encode
from penstock.errors import InvalidRequest
from tests.gateway import OpenGateway, sqlite_only


def test_a_dry_run_is_off_unless_asked_for() -> None:
    [row] = DRY_RUN
    assert (row.name, row.type, row.default) == ("dryRun", "boolean", False)


def test_replay_headers_are_those_of_the_interface() -> None:
    found = {row.name: row for row in REPLAY}
    assert set(found) == {f"X-Service-Replay{rest}" for rest in ("", "-Match", "-Fields", "-Recording", "-Latency")}
    assert set(found["X-Service-Replay"].one_of) == {
        "record", "replay-or-mock", "replay-or-error", "replay-or-live", "replay-or-record", "mock", "off",
    }  # fmt: skip
    added = ("exact",)  # our own
    assert set(found["X-Service-Replay-Match"].one_of) - set(added) == {"standard", "strict", "specific", "pinned"}


def test_videos_are_listed_newest_first() -> None:
    assert {row.name: row.default for row in VIDEOS_QUERY} == {"limit": 20, "after": None, "order": "desc"}


@sqlite_only
async def test_pages_of_videos(open_gateway: OpenGateway) -> None:
    async with open_gateway(works=False, worker=False) as running:
        made = []
        for _ in range(3):
            running.clock.advance(1)
            made.append((await running.video()).json["id"])

        async def listed(query: dict[str, str]) -> list[Any]:
            response = await list_videos(running.gateway, running.call(query=query))
            body = msgspec.json.decode(encode(response.json))
            return [video["id"] for video in body["data"]]

        assert await listed({}) == made[::-1]
        assert await listed({"limit": "2", "after": made[2]}) == [made[1], made[0]]
        assert await listed({"order": "asc", "limit": "1"}) == [made[0]]
        for name, value in (("limit", "0"), ("limit", "101"), ("limit", "x"), ("limit", "٣"), ("order", "up")):
            with pytest.raises(InvalidRequest, match=name):
                await listed({name: value})
