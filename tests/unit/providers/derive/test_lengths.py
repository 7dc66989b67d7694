"""Lengths are sent in the form that a model takes: seconds, words for seconds, or frames."""

from typing import Any

from penstock.providers.derive.draft import Draft
from penstock.providers.derive.lengths import take_seconds, without_frame_counts, without_frame_rates
from penstock.providers.spec import passthrough


def seconds(**properties: Any) -> tuple[Any, ...]:
    row = take_seconds(Draft({"properties": properties}))
    if row is None or row.convert is None:
        return ()
    return row.to, row.high, row.default, [row.convert(wanted) for wanted in (1, 5, 7.5)]


def test_lengths() -> None:
    assert seconds(duration={"enum": ["5", "10"], "default": "5"}) == (("duration",), 10, 5, ["5", "5", "10"])
    assert seconds(duration={"enum": ["4s", "8s", "auto"]})[3] == ["4s", "8s", "8s"]
    ranged = {"type": "integer", "minimum": 3, "maximum": 15, "default": 5}
    assert seconds(duration=ranged) == (("duration",), 15, 5, [3, 5, 8])
    frames_field = {"type": "integer", "default": 81, "maximum": 161}
    rate = {"type": "integer", "default": 16}
    counted = (("num_frames",), 10.1, 5.1, [(17,), (81,), (121,)])
    assert seconds(num_frames=frames_field, fps=rate) == counted
    assert seconds(video_length={"type": "integer", "default": 129}, fps=rate)[2] == 8.1
    assert seconds(num_frames=frames_field) == seconds(duration={"type": "string"}) == ()


def test_a_number_of_frames_that_nobody_can_tell_in_seconds_is_no_parameter_where_a_second_has_a_price() -> None:
    rows = (passthrough("num_frames"), passthrough("seconds"), passthrough("frames", required=True))
    assert [row.name for row in without_frame_counts(rows)] == ["seconds", "frames"]


def test_how_many_frames_a_second_has_is_no_parameter_where_frames_have_a_price() -> None:
    names = ("fps", "target_fps", "frames_per_second", "num_interpolated_frames", "seconds", "frame_rate")
    rows = (*map(passthrough, names), passthrough("framerate", required=True))
    assert [row.name for row in without_frame_rates(rows)] == ["seconds", "framerate"]
