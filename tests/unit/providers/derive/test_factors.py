"""By how much a model upscales is recognised in all the ways in which schemas say it."""

from typing import Any

from penstock.providers.derive.draft import Draft
from penstock.providers.derive.factors import take_factor, without_factors
from penstock.providers.spec import passthrough


def draft(**properties: Any) -> Draft:
    return Draft({"type": "object", "properties": properties})


def test_factors_as_numbers_and_words() -> None:
    for schema, value in (({"type": "number", "maximum": 8}, 2), ({"enum": ["2x", "4x"]}, "2x"), ({"enum": [2, 4]}, 2)):
        (row,) = take_factor(draft(scale=schema), "image", has_frame=False)
        assert (row.to, row.convert(2.0) if row.convert else 2) == (("scale",), value)


def test_the_factor_of_a_video_has_a_default() -> None:
    (smallest,) = take_factor(draft(factor={"enum": ["4x", "3x"]}), "video", has_frame=False)
    (usual,) = take_factor(draft(factor={"type": "number"}), "video", has_frame=False)
    (own,) = take_factor(draft(factor={"type": "number", "default": 4}), "video", has_frame=False)
    assert (smallest.default, usual.default, own.default) == (3, 2, 4)


def test_without_a_field_the_size_of_the_video_decides() -> None:
    (row,) = take_factor(draft(), "video", has_frame=True)
    assert (row.name, row.default, row.to) == ("scale_factor", 2, ())
    assert take_factor(draft(), "video", has_frame=False) == take_factor(draft(), "image", has_frame=True) == []


def test_factors_beside_the_one_of_an_upscaler_are_left_out() -> None:
    rows = (passthrough("scale_factor"), passthrough("upscale_factor"), passthrough("fidelity"))
    assert [row.name for row in without_factors(rows)] == ["scale_factor", "fidelity"]
