"""`penstock drill`: the requests of a window routed again, in thought."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
import typer

from penstock.commands.drill import time_of
from penstock.values import DAY_MS
from tests.command_line import done, penstock
from tests.gateway import MASTER, Installation, OpenGateway, sqlite_only

NOW_MS = int(datetime(2026, 11, 19, 6, 30, tzinfo=UTC).timestamp() * 1000)
MIDNIGHT_MS = int(datetime(2026, 11, 19, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", MIDNIGHT_MS),
        ("yesterday", MIDNIGHT_MS - DAY_MS),
        ("6h", NOW_MS - DAY_MS // 4),
        ("7d", NOW_MS - 7 * DAY_MS),
        ("2026-11-19", MIDNIGHT_MS),
        ("2026-11-19T02:00:00+02:00", MIDNIGHT_MS),
    ],
)
def test_times_may_be_words_ages_or_iso(text: str, expected: int) -> None:
    assert time_of(text, NOW_MS) == expected


def test_other_times_are_refused() -> None:
    for text in ("tomorrow", "0h", "6", ""):
        with pytest.raises(typer.BadParameter, match="yesterday"):
            time_of(text, NOW_MS)


@sqlite_only
def test_a_line_for_each_class_and_a_sum(open_gateway: OpenGateway, installation: Installation) -> None:
    async def make_images() -> None:
        async with open_gateway() as running:
            for _ in range(2):
                await running.image()

    asyncio.run(make_images())
    config = installation.data / "drill.toml"
    config.write_text(
        '[providers.lab]\nspeaks = "openai"\nbase_url = "http://127.0.0.1:9/v1"\nkey_env = "LAB_API_KEY"\n'
    )
    day = installation.clock.now_ms() // DAY_MS * DAY_MS
    window = [datetime.fromtimestamp(at_ms / 1000, UTC).isoformat() for at_ms in (day, day + DAY_MS)]
    words = ("drill", "--data", installation.data, "--config", config, "--from", window[0], "--to", window[1])
    usual = done(*words, PENSTOCK_SECRET=MASTER)
    assert usual.lines == [["image", "image-1", "lab", "2", "0", "0", "0", "$0.08", "$0.08", ""]]
    ended = done(*words, "--down", "lab", PENSTOCK_SECRET=MASTER)
    assert ended.lines == [["image", "image-1", "lab", "2", "0", "0", "2", "$0.08", "$0.00", ""]]
    assert "2 requests: 2 failed; $0.08, then $0.00" in ended.err
    report = json.loads(done(*words, "--dearer", "lab=2x", "--json", PENSTOCK_SECRET=MASTER).out)
    assert (report["requests"], float(report["cost_then"])) == (2, 0.16)
    wrong = penstock(*words, "--down", "lb", PENSTOCK_SECRET=MASTER)
    assert (wrong.status, "`lb`" in wrong.err) == (1, True)
