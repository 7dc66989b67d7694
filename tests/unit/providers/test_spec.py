"""The vocabulary for provider files: rows, complete tables, replies and results."""

import msgspec
import pytest

from penstock.fields import TABLES
from penstock.providers.convert import nest_under, number_text
from penstock.providers.spec import (
    Operation,
    Param,
    Reply,
    Result,
    Status,
    Task,
    bearer,
    complete_table,
    converted,
    duration,
    emulated,
    fixed,
    frame,
    header,
    ignored,
    passthrough,
    refused,
    renamed,
)
from penstock.values import Frame


def read(reply: Reply) -> Result:
    return Result()


def operation(*params: Param) -> Operation:
    return Operation(task="image", send="POST /x", params=params, read=read)


@pytest.mark.parametrize(
    ("row", "handling", "to"),
    [
        (passthrough("prompt", max_length=5), "passthrough", ("prompt",)),
        (renamed("prompt", "text"), "renamed", ("text",)),
        (converted("frame", "size", str), "converted", ("size",)),
        (converted("frame", ("width", "height"), str), "converted", ("width", "height")),
        (emulated("n"), "emulated", ()),
        (emulated("n", "num_images", high=4), "emulated", ("num_images",)),
        (fixed("output_format", "png"), "fixed", ("output_format",)),
        (*ignored("user"), "ignored", ()),
        (*refused("mask"), "refused", ()),
    ],
)
def test_rows(row: Param, handling: str, to: tuple[str, ...]) -> None:
    assert (row.handling, row.to) == (handling, to)


@pytest.mark.parametrize("task", ["image", "edit", "upscale", "video"])
def test_a_complete_table_has_one_row_for_every_standard_field(task: Task) -> None:
    """Fields that steer the gateway, and those that tables know by another name, aside."""
    elsewhere = set(
        "model webhook_url media_retention idempotency_key metadata session_id size aspect_ratio resolution stream "
        "partial_images provider labels provenance deliver_to deliver_required".split()
    )
    standard = {row.name for row in TABLES[task].values() if not row.alias_of} - elsewhere
    names = [row.name for row in complete_table(task)]
    assert sorted(names) == sorted(set(names))
    needed = {"image": {"prompt"}, "edit": {"prompt", "image"}, "upscale": {"image", "scale_factor"}}
    assert standard - set(names) == needed.get(task, {"prompt", "seconds"})


def test_a_complete_table_keeps_the_given_rows() -> None:
    mask = passthrough("mask")
    table = {row.name: row for row in complete_table("edit", mask, emulated("n", "num_images", high=4))}
    assert table["mask"] is mask
    assert table["n"].high == 4


def test_a_whole_table_refuses_what_would_be_missed() -> None:
    video = {row.name: row.handling for row in complete_table("video")}
    assert video == {
        "n": "emulated", "input_reference": "refused", "negative_prompt": "refused",
        "generate_audio": "refused", "frame": "ignored", "user": "ignored", "scale_factor": "ignored",
    }  # fmt: skip
    assert {row.name for row in complete_table("edit") if row.handling == "refused"} == {"mask"}


@pytest.mark.parametrize(
    ("row", "native"), [(emulated("n"), 1), (emulated("n", "n"), 1), (emulated("n", "n", high=4), 4)]
)
def test_outputs_of_one_call(row: Param, native: int) -> None:
    assert operation(row).native_n == native
    assert operation().native_n == 1


def test_rows_are_found_by_name() -> None:
    prompt = passthrough("prompt")
    assert operation(prompt).param("prompt") is prompt
    assert operation(prompt).param("n") is None


def test_replies_read_json_once() -> None:
    reply = Reply(200, {}, b'{"a": 1}')
    assert reply.json is reply.json
    with pytest.raises(msgspec.DecodeError):
        _ = Reply(200, {}, b"<html>").json


@pytest.mark.parametrize(
    ("status", "done"),
    [("queued", False), ("in_progress", False), ("completed", True), ("failed", True), ("cancelled", True)],
)
def test_results_are_done_or_not(status: Status, done: bool) -> None:
    assert Result(status=status).done is done


def test_credentials_as_headers() -> None:
    assert bearer("k") == {"authorization": "Bearer k"}
    assert header("x-key")("k") == {"x-key": "k"}
    assert header("authorization", "Key ")("k") == {"authorization": "Key k"}


def test_fields_under_one_name() -> None:
    assert nest_under("input")({"a": 1}) == {"input": {"a": 1}}


# --------------------------------------------------------------------------------------------------------------- videos


def sent(row: Param, value: object) -> object:
    assert row.convert is not None
    return row.convert(value)


def test_how_long_a_video_lasts() -> None:
    row = duration(5, 10, convert=number_text, default=5)
    assert (row.name, row.to, row.default, row.high) == ("seconds", ("duration",), 5, 10)
    assert [sent(row, seconds) for seconds in (3, 5, 7.5, 10)] == ["5", "5", "10", "10"]


def test_what_a_video_looks_like() -> None:
    video = frame("16:9 1:1", "720p", "1080p")
    assert (video.to, video.default) == (("aspect_ratio", "resolution"), "16:9")
    assert sent(video, Frame.parse("16:9")) == ("16:9", "720p")
    assert sent(video, Frame.parse("1080x1080")) == ("1:1", "1080p")
    ratio, resolution, as_image = frame("1:1 16:9"), frame("", "720p", "1080p"), frame()
    assert (ratio.to, ratio.default, sent(ratio, Frame.parse("1920x1080"))) == (("aspect_ratio",), "1:1", "16:9")
    assert (resolution.to, sent(resolution, Frame.parse("1920x1080"))) == (("resolution",), "1080p")
    assert (as_image.handling, as_image.to, as_image.default) == ("ignored", (), "16:9")
