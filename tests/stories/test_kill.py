"""kill -9 in the middle of everything: after a restart nothing is lost, doubled or unpaid."""

import asyncio
from collections import Counter
from decimal import Decimal

import openai
import pytest

from tests.fake_providers import faults
from tests.fake_providers.scripted import ScriptedProvider
from tests.stories.processes import Installation, Serving, until

CALLS = 100


async def hundred(served: Serving, enough: int) -> Counter[str]:
    """Ask for a hundred images at once, and kill the server when this many responses have arrived."""
    outcomes: Counter[str] = Counter()

    async def ask(client: openai.AsyncOpenAI, number: int) -> None:
        try:
            await client.images.generate(model="image-1", prompt=f"pear {number}", size="64x64")
        except openai.APIConnectionError:
            outcomes["cut off"] += 1
        except openai.APIStatusError as problem:
            outcomes[str(problem.status_code)] += 1
        else:
            outcomes["made"] += 1
        if outcomes["made"] >= enough and served.process.poll() is None:
            served.process.kill()

    async with openai.AsyncOpenAI(base_url=served.base_url, api_key=served.key, max_retries=0) as client:
        await asyncio.gather(*(ask(client, number) for number in range(CALLS)))
    return outcomes


def open_requests(served: Serving) -> int:
    return sum(
        int(served.call("GET", f"/v1/requests?summary=true&limit=1&status={status}").json["summary"]["count"])
        for status in ("pending", "processing")
    )


@pytest.mark.sweep(2)
def test_a_gateway_killed_among_a_hundred_images(story: Installation, lab: ScriptedProvider) -> None:
    """Sixty responses arrive around the kill; the other images are still being generated."""
    lab.images.next(*[faults.slowly(0.05)] * 60)
    lab.images.always(faults.stalled)
    with story.serving() as served:
        outcomes = asyncio.run(hundred(served, 20))
        served.process.wait()
    assert outcomes["made"] >= 20
    assert outcomes["cut off"] > 0
    lab.images.always(faults.ok)  # for those that were promised and not sent yet
    with story.serving() as served:
        until(lambda: open_requests(served) == 0)
        summary = served.call("GET", "/v1/requests?summary=true&status=completed").json["summary"]
        balance = served.call("GET", "/v1/balance").json["available"]["amount"]
        assert summary["count"] >= outcomes["made"], "every image that a caller got has a record"
        assert summary["count"] <= len(lab.invoice), "and nobody pays for what was not made"
        assert Decimal(str(summary["total_cost"])) == Decimal("0.04") * summary["count"]
        assert Decimal(str(balance)) == 10 - Decimal(str(summary["total_cost"]))
        sent = Counter(received.fields["prompt"] for received in lab.images.received)
        assert max(sent.values()) == 1, "nothing was sent again"
    audited = story.penstock("audit")
    assert (audited.status, audited.out.splitlines()[-1]) == (0, "audit clean"), audited.err


@pytest.mark.sweep(2)
def test_videos_survive_a_killed_process(story: Installation, lab: ScriptedProvider) -> None:
    """Twelve videos are accepted; the server is killed three times meanwhile, and each video ends once."""
    body = {"model": "video-1", "prompt": "a train", "seconds": 1}
    lab.states = ("queued", "in_progress 50", "in_progress 90", "completed")
    with story.serving() as served:
        ids = [served.call("POST", "/compat/v1/videos", body).json["id"] for _ in range(12)]
        until(lambda: len(lab.videos) >= 4)
        served.kill()
    for _ in range(2):
        with story.serving() as served:
            polls = len(lab.polls)
            until(lambda polls=polls: len(lab.polls) > polls)  # type: ignore[misc]
            served.kill()
    with story.serving() as served:

        def shown(video_id: str) -> tuple[str, str | None]:
            video = served.call("GET", f"/compat/v1/videos/{video_id}").json
            return video["status"], video["error"] and video["error"]["code"]

        until(lambda: all(shown(video_id)[0] in ("completed", "failed") for video_id in ids), 60)
        ends = Counter(shown(video_id) for video_id in ids)
        assert set(ends) <= {("completed", None), ("failed", "UPSTREAM_OUTCOME_UNKNOWN")}
        assert ends["completed", None] >= 4
        assert len(lab.videos) <= len(ids)
        assert served.call("GET", "/v1/balance").json["available"]["amount"] == float(
            10 - Decimal("0.1") * ends["completed", None]
        )
    assert story.penstock("audit").status == 0
