"""Prompts that are typed, in a file, or those of recent requests."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.fields import UploadedFile
from penstock.settings import Settings
from penstock.trials.prompts import MOST_PROMPTS, kept_fields, read_file, read_prompts, read_recent
from tests.gateway import OpenGateway, sqlite_only


def test_outputs_are_kept_while_people_vote_or_as_long_as_callers_may_ask() -> None:
    assert kept_fields(Settings(), "image") == {"media_retention": "14d"}
    assert kept_fields(Settings(media_retention_max="36h"), "video") == {"media_retention": "36h"}
    assert kept_fields(Settings(), "chat") == {}


def test_a_prompt_is_a_text_or_the_fields_of_a_call() -> None:
    first, second = read_prompts("image", ["a pear", {"prompt": "a plum", "size": "32x32"}], {"size": "64x64"})
    assert first.body == {"prompt": "a pear", "size": "64x64"}
    assert second.body == {"prompt": "a plum", "size": "32x32"}


def test_the_prompt_of_a_chat_is_the_message_of_its_user() -> None:
    messages = [{"role": "user", "content": "hello"}]
    for prompt in ("hello", {"prompt": "hello"}, {"messages": messages}):
        (line,) = read_prompts("chat", [prompt], {})
        assert line.body == {"messages": messages}


def test_a_file_is_read_as_batches_read_it() -> None:
    table = b"prompt,output_compression\na pear,7\n"
    lines = b'{"prompt": "a pear"}\n{"custom_id": "x", "body": {"prompt": "a plum"}}\n'
    (row,) = read_file("image", UploadedFile(table, "a.csv"), {"size": "64x64"})
    assert row.body == {"prompt": "a pear", "output_compression": 7, "size": "64x64"}
    found = read_file("image", UploadedFile(lines, "a.jsonl"), {})
    assert [line.body for line in found] == [{"prompt": "a pear"}, {"prompt": "a plum"}]


@pytest.mark.parametrize(
    ("prompts", "param", "words"),
    [
        ([], "prompts", "no prompts"),
        (["a pear"] * (MOST_PROMPTS + 1), "prompts", "at most 200"),
        (["a pear", 7], "prompts", "Prompt 2 must be a text"),
        ([{"prompt": "a pear", "n": 2}], "n", "one output"),
        ([{"url": "/v1/videos", "body": {"prompt": "a pear"}}], "url", "/v1/images/generations"),
    ],
)
def test_what_cannot_be_compared_is_refused(prompts: list[Any], param: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refused:
        read_prompts("image", prompts, {})
    assert refused.value.param == param


async def test_recent_prompts_are_those_of_the_organization_each_once(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for prompt in ("a pear", "a plum", "a pear"):
            await running.image(prompt=prompt)
            running.clock.advance(1)
        stranger = await running.create_caller_in_new_org()
        await running.image(caller=stranger, prompt="not mine")
        org_id = running.caller.org_id
        found = await read_recent(running.gateway, org_id, "image", {}, {"size": "32x32"})
        assert [line.body for line in found] == [
            {"prompt": "a pear", "size": "32x32"},
            {"prompt": "a plum", "size": "32x32"},
        ]
        noted = await running.rows("SELECT target FROM audit_events WHERE action = 'payloads.read'")
        assert [row["target"] for row in noted] == ["recent requests"]
        (newest,) = await read_recent(running.gateway, org_id, "image", {"limit": 1, "model": "image-1"}, {})
        assert newest.body == {"prompt": "a pear", "size": "64x64"}


@sqlite_only
async def test_a_filter_that_is_wrong_or_finds_nothing_is_refused(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        for asked, param in (
            ({"limit": 0}, "recent.limit"),
            ({"limit": True}, "recent.limit"),
            ({"model": 7}, "recent.model"),
            ({"models": "x"}, "recent"),
            ({"model": "image-1"}, "recent"),
        ):
            with pytest.raises(InvalidRequest) as refused:
                await read_recent(running.gateway, running.caller.org_id, "image", asked, {})
            assert refused.value.param == param
