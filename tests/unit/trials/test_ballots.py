"""Blind votes: what a voter sees says nothing about the models, and each vote counts once."""

import asyncio
import io
import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from penstock.errors import NotFound, PermissionDenied
from penstock.trials import ballots
from penstock.trials.ballots import next_pair, shown_file, vote
from penstock.trials.links import make_link, revoke_link
from tests.fake_providers import faults, scripted
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.unit.trials.trial_calls import MODELS, record, retrieve, run


async def share(running: RunningGateway, trial_id: str, *, shows_prompts: bool = True) -> str:
    """The text of the link."""
    trial = await record(running, trial_id)
    link = await make_link(running.gateway, trial, "http://gateway.test", days=14, shows_prompts=shows_prompts)
    return str(link["url"].partition("#")[2])


async def vote_on_all(running: RunningGateway, link: str, voter: str | None, choice: ballots.Vote) -> tuple[str, int]:
    """Vote on every pair that is shown; return who voted, and on how many."""
    count = 0
    while True:
        shown = await next_pair(running.gateway, link, voter)
        voter = str(shown["voter"])
        if shown["pair"] is None:
            return voter, count
        assert await vote(running.gateway, shown["pair"], choice)
        count += 1


async def test_everybody_votes_once_on_each_pair_and_the_winner_is_known(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        made = await run(running, prompts=["a pear", "a plum", "a fig"], models=[*MODELS, "image-1"])
        link = await share(running, made["id"])
        voter, count = await vote_on_all(running, link, None, "tie")
        assert count == 9
        assert (await vote_on_all(running, link, voter, "tie"))[1] == 0
        other, again = await vote_on_all(running, link, None, "both_bad")
        assert again == 9
        assert other != voter
        found = await retrieve(running, made["id"])
        assert (found["votes"], found["voters"]) == (18, 2)
        assert [(row["ties"], row["both_bad"], row["win_rate"]) for row in found["results"]] == [(6, 6, 0.5)] * 3


async def test_a_vote_is_for_the_output_on_its_side(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        made = await run(running, prompts=["a pear"])
        link = await share(running, made["id"])
        sides = set()
        for number in range(40):
            shown = await next_pair(running.gateway, link, f"{number:032}")
            ballot = ballots._open(running.gateway, shown["pair"], ballots._PAIR, ballots.Ballot)
            sides.add((ballot.left, ballot.right))
            assert await vote(running.gateway, shown["pair"], "left" if ballot.left == 1 else "right")
        assert sides == {(0, 1), (1, 0)}
        first, second = (await retrieve(running, made["id"]))["results"]
        assert (first["wins"], second["wins"], second["win_rate"]) == (0, 40, 1.0)


async def test_a_second_vote_on_a_pair_does_not_count_also_at_the_same_time(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        made = await run(running, prompts=["a pear"])
        link = await share(running, made["id"])
        shown = await next_pair(running.gateway, link, None)
        counted = await asyncio.gather(*(vote(running.gateway, shown["pair"], "left") for _ in range(5)))
        assert sorted(counted) == [False, False, False, False, True]
        assert not await vote(running.gateway, shown["pair"], "right")
        assert (await retrieve(running, made["id"]))["votes"] == 1


async def test_nothing_that_a_voter_gets_names_a_model_a_provider_or_an_id(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        made = await run(running, prompts=["a pear"], name="secret name")
        link = await share(running, made["id"], shows_prompts=False)
        shown = await next_pair(running.gateway, link, None)
        assert shown["prompt"] is None
        seen = [json.dumps(shown).encode(), *map(unsealed, (shown["pair"], *urls(shown)))]
        for url in urls(shown):
            response = await shown_file(running.gateway, url, None)
            headers = {name.lower() for name in response.headers}
            assert not headers & {"etag", "last-modified", "content-disposition", "x-service-model"}
            assert response.media_type == "image/webp"
            seen += [repr(dict(response.headers)).encode(), bytes(response.body or b"")]
        (rows,) = [await running.rows("SELECT request_id FROM batch_rows")]
        known = [row["request_id"] for row in rows] + [made["id"], made["batch_id"], running.caller.org_id]
        for word in ("lab", "annex", "image-1", "secret name", "cost", *known):
            assert not any(word.encode() in text for text in seen), word


def unsealed(text: str) -> bytes:
    """The bytes of a sealed text, as somebody sees them who does not know the secret."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def urls(shown: dict[str, Any]) -> list[str]:
    return [shown[side]["url"].rpartition("/")[2] for side in ("left", "right")]


async def test_a_revoked_link_shows_nothing_and_takes_no_vote(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        made = await run(running, prompts=["a pear"])
        link = await share(running, made["id"])
        shown = await next_pair(running.gateway, link, None)
        await revoke_link(running.gateway, await record(running, made["id"]))
        with pytest.raises(NotFound):
            await next_pair(running.gateway, link, None)
        with pytest.raises(NotFound):
            await vote(running.gateway, shown["pair"], "left")
        with pytest.raises(NotFound):
            await shown_file(running.gateway, urls(shown)[0], None)
        assert (await retrieve(running, made["id"]))["votes"] == 0


@sqlite_only
async def test_what_was_not_shown_or_long_ago_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, media_retention="30d") as running:
        made = await run(running, prompts=["a pear"])
        link = await share(running, made["id"])
        shown = await next_pair(running.gateway, link, None)
        file = urls(shown)[0]
        for sealed in ("", "x", "é", file, shown["pair"][:-2] + "AA"):
            with pytest.raises(PermissionDenied):
                await vote(running.gateway, sealed, "left")
        with pytest.raises(PermissionDenied):
            await shown_file(running.gateway, shown["pair"], None)
        running.clock.advance(86_400)
        with pytest.raises(PermissionDenied):
            await vote(running.gateway, shown["pair"], "left")


async def test_only_outputs_that_are_there_are_compared(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.annex.images.next(faults.blocked)
        made = await run(running, prompts=["a pear", "a plum"], max_cost=1)
        link = await share(running, made["id"])
        shown = await next_pair(running.gateway, link, None)
        assert (shown["total"], shown["is_running"]) == (1, False)
        await running.change("UPDATE generations SET expires_at_ms = 1")
        assert (await next_pair(running.gateway, link, None))["pair"] is None


async def test_texts_of_chats_are_compared_too(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        models = ["lab/chat", "annex/lab/chat"]
        made = await run(running, prompts=["hello"], models=models, kind="chat", parameters={})
        assert made["counts"]["completed"] == 2
        shown = await next_pair(running.gateway, await share(running, made["id"]), None)
        assert shown["prompt"] == "hello"
        assert all(shown[side]["text"] and shown[side]["url"] is None for side in ("left", "right"))
        assert "lab" not in json.dumps(shown)


async def test_what_a_provider_writes_into_its_files_is_not_in_what_voters_see(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named_png(width: int, height: int, colour: str = "teal") -> bytes:
        notes = PngInfo()
        notes.add_text("Software", "annex image-1")
        file = io.BytesIO()
        Image.new("RGB", (width, height), colour).save(file, "PNG", pnginfo=notes, icc_profile=b"annex profile")
        return file.getvalue()

    monkeypatch.setattr(scripted, "png", named_png)
    async with open_gateway(annex=True) as running:
        made = await run(running, prompts=["a pear"])
        shown = await next_pair(running.gateway, await share(running, made["id"]), None)
        for url in urls(shown):
            body = bytes((await shown_file(running.gateway, url, None)).body or b"")
            assert body.startswith(b"RIFF")
            assert b"annex" not in body


async def test_videos_are_shown_under_a_neutral_name(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        models = ["lab/video-1", "annex/video-1"]
        made = await run(running, prompts=["a train"], models=models, kind="video", parameters={"seconds": 4})
        assert made["counts"]["completed"] == 2, made
        shown = await next_pair(running.gateway, await share(running, made["id"]), None)
        response = await shown_file(running.gateway, urls(shown)[0], "bytes=0-9")
        assert (response.status, response.headers["content-type"]) == (206, "video/mp4")
        assert response.headers["content-disposition"] == 'inline; filename="output.mp4"'
        assert "med_" not in repr(dict(response.headers))
