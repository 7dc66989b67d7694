"""The input images and videos of a call: in every form that callers send, and with the roles that they state."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.generations.input_sources import InputSource, check_frames, take_inputs
from penstock.net.checked_urls import egress_rules
from penstock.settings import Settings

PNG = "data:image/png;base64,iVBORw0KGgo="
URL = "https://inputs.example/fox.png"


def references(value: Any) -> tuple[InputSource, ...]:
    found = tuple(take_inputs({"input_reference": value}, "input_reference", "reference", egress_rules(Settings())))
    check_frames(found)
    return found


@pytest.mark.parametrize(
    ("fields", "sources"),
    [
        (PNG, [PNG]),
        (URL, [URL]),
        ({"image_url": URL}, [URL]),
        ({"url": PNG}, [PNG]),
        ({"image_url": {"url": PNG}}, [PNG]),
        ([{"image_url": PNG}, URL, {"image_url": "DATA:image/webp;charset=x;BASE64,AA=="}],
         [PNG, URL, "DATA:image/webp;charset=x;BASE64,AA=="]),
        ([], []),
        (None, []),
        ([PNG] * 16, [PNG] * 16),
    ],
)  # fmt: skip
def test_input_references_in_json(fields: Any, sources: list[str]) -> None:
    inputs = references(fields)
    assert inputs == tuple(InputSource("reference", source, "input_reference") for source in sources)


def test_input_references_may_state_a_role() -> None:
    url = "https://inputs.example/fox.png"
    words = ("last_frame", "first_frame", "reference")
    stated = [{"image_url": url, "role": word} for word in words]
    inputs = references(stated)
    assert [item.role for item in inputs] == ["last_frame", "first_frame", "reference_image"]
    assert references([{"last_frame": url}])[0].role == "last_frame"
    wrongs: tuple[Any, ...] = ("hero", {}, [])
    for wrong in wrongs:
        with pytest.raises(
            InvalidRequest, match=r"`role` of an image in `input_reference` must be one of `first_frame`"
        ):
            references({"image_url": url, "role": wrong})
    with pytest.raises(InvalidRequest, match="more than one `last_frame`"):
        references([{"image_url": url, "role": "last_frame"}] * 2)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (5, "`input_reference` must be a file, `{image_url}` with an HTTPS URL, or a base64 data URI."),
        ([None], "`input_reference` must be a file"),
        ({"file_id": "file-1"}, "`input_reference` cannot be a `file_id`"),
        ({"image_url": None}, "`input_reference` must be a file"),
        ({"image_url": ["x"]}, "`input_reference` must be a file"),
        ("data:image/png,notbase64", "`input_reference` must be a file"),
        ("http://inputs.example/fox.png", "`input_reference` must be an https:// URL"),
        ("https://169.254.169.254/latest", "`input_reference` must be an https:// URL"),
        ("file:///etc/passwd", "`input_reference` must be an https:// URL"),
        ("", "`input_reference` must be an https:// URL"),
        ([PNG] * 17, "`input_reference` takes at most 16."),
    ],
)
def test_invalid_input_references_are_refused(fields: Any, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        references(fields)
    assert caught.value.message.startswith(words)
    assert caught.value.param == "input_reference"
