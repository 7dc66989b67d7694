"""Which images of a conversation the image tool edits; the journeys are in test_responses.py."""

from typing import Any

import pytest

from penstock.chat.image_tool import conversation_images
from tests.work import peak_bytes

SENT: Any = {"role": "user", "content": [{"type": "input_image", "image_url": "https://a.test/1.png"}]}
MADE: Any = {"type": "image_generation_call", "result": "AAAA", "output_format": "webp"}


@pytest.mark.parametrize(
    ("given", "images"),
    [
        ("a pear", ()),
        ([{"role": "user", "content": "a pear"}], ()),
        ([SENT], ("https://a.test/1.png",)),
        ([SENT, MADE], ("data:image/webp;base64,AAAA",)),
        ([MADE, SENT, {"role": "user", "content": "and now?"}], ("https://a.test/1.png",)),
        ([{**MADE, "result": None}], ()),
        ([{**SENT, "role": "assistant"}], ()),
    ],
)
def test_the_newest_images_are_edited(given: Any, images: tuple[str, ...]) -> None:
    assert conversation_images(given) == images


async def test_a_long_image_is_copied_once_into_its_data_uri() -> None:
    """In steps, between which other threads run: pieces that are joined at the end would be a second copy."""
    text = "QUJD" * 2**20
    found: list[str] = []

    async def work() -> None:
        found.extend(conversation_images([{**MADE, "result": text}]))

    assert await peak_bytes(work) < 1.5 * len(text)
    assert found == [f"data:image/webp;base64,{text}"]
