"""The sizes of GPT Image models, and the tokens that they report."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.providers.gpt_images import free_size, read_images
from penstock.providers.spec import Reply
from penstock.values import Frame


@given(st.integers(16, 8192), st.integers(16, 8192))
def test_free_size_is_one_that_the_model_has(width: int, height: int) -> None:
    wide, tall = (int(side) for side in free_size(Frame(width, height)).split("x"))
    assert wide % 16 == tall % 16 == 0
    assert 655_360 <= wide * tall <= 3840 * 2160
    assert max(wide, tall) <= min(3840, 3 * min(wide, tall))


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        ("1024x1024", "1024x1024"), ("1792x1024", "1792x1024"), ("256x256", "816x816"), ("3840x2160", "3840x2160"),
        ("4096x4096", "2880x2880"), ("4000x500", "1504x512"), ("16:9", "1824x1024"),
    ],
)  # fmt: skip
def test_free_size(asked: str, made: str) -> None:
    assert free_size(Frame.parse(asked)) == made


def test_text_and_image_tokens_are_apart() -> None:
    def details(text: int, image: int) -> dict[str, int]:
        return {"text_tokens": text, "image_tokens": image}

    usage = {"input_tokens": 12, "output_tokens": 30, "input_tokens_details": details(2, 10)}
    data = [{"b64_json": "b25l"}]
    whole = {"data": data, "usage": usage, "output_format": "webp"}
    result = read_images(Reply(200, {}, json.dumps(whole).encode()))
    assert result.usage == {"input": 10, "text_input": 2, "output": 30}
    assert [file.content_type for file in result.files] == ["image/webp"]
    usage["output_tokens_details"] = details(5, 25)
    result = read_images(Reply(200, {}, json.dumps({"data": data, "usage": usage}).encode()))
    assert result.usage == {"input": 10, "text_input": 2, "output": 25, "text_output": 5}
