"""Outputs over the API: what is found, by whom, and favorites."""

import pytest

from penstock.errors import NotFound
from tests.gateway import OpenGateway, caller_with
from tests.unit.generations.library_calls import change, library, share


async def test_outputs_are_found_by_words_type_model_key_and_time(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        image = await running.image(prompt="a red fox", n=2)
        running.clock.advance(10)
        video = await running.wait_for_video((await running.video(prompt="a red train")).json["id"])
        everything = await library(running)
        assert [output["request_id"] for output in everything] == [video["id"], image["id"], image["id"]]
        train, *foxes = everything
        assert (train["kind"], train["content_type"], train["prompt"]) == ("video", "video/mp4", "a red train")
        assert train["key_name"] == "first key"
        for query, expected in [
            ({"search": "RED fox"}, foxes),
            ({"type": "video"}, [train]),
            ({"type": "audio"}, []),
            ({"kind": "image"}, foxes),
            ({"model": train["model"]}, [train]),
            ({"key_id": train["key_id"]}, everything),
            ({"key_id": "key_other"}, []),
            ({"request_id": image["id"]}, foxes),
            ({"created_after": train["created_at"]}, [train]),
            ({"created_before": foxes[0]["created_at"]}, foxes),
            ({"favorite": "true"}, []),
            ({"limit": "1", "starting_after": train["id"]}, foxes[:1]),
        ]:
            found = await library(running, **query)
            assert [output["id"] for output in found] == [output["id"] for output in expected], query


async def test_outputs_of_another_organization_are_neither_listed_nor_changed(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.image()
        [output] = await library(running)
        other = caller_with(await running.create_caller_in_new_org(), scopes=frozenset({"admin"}))
        assert await library(running, other) == []
        with pytest.raises(NotFound):
            await change(running, output["id"], other, favorite=True)
        with pytest.raises(NotFound):
            await share(running, output["id"], other)
        with pytest.raises(NotFound):
            await change(running, "med_none", favorite=True)


async def test_a_favorite_is_marked_and_unmarked(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        await running.image(n=2)
        first, _ = await library(running)
        assert (await change(running, first["id"], favorite=True))["favorite"] is True
        assert [output["id"] for output in await library(running, favorite="true")] == [first["id"]]
        assert (await change(running, first["id"], favorite=False))["favorite"] is False
        assert await library(running, favorite="true") == []
