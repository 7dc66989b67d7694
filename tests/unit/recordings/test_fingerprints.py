"""Which calls are alike: what the match `standard` ignores, and what it compares."""

from typing import Any

import pytest

from penstock.fields import UploadedFile
from penstock.recordings.fingerprints import make_fingerprint
from penstock.schema import Request


def standard_digest(
    values: dict[str, Any], *, kind: str = "image", model: str = "m", inputs: Any = (), **extras: Any
) -> bytes:
    request = Request(task=kind, model=model, values=values, extras=extras)
    return make_fingerprint(request, model, inputs, b"").standard


@pytest.mark.parametrize(
    "values",
    [
        {"prompt": "other words"},
        {"prompt": "a", "user": "u1"},
        {"prompt": "a", "session_id": "s"},
        {"prompt": "a", "n": 1, "size": "1024x1024", "response_format": "url", "output_format": "png"},
    ],
)
def test_standard_ignores_prompt_user_and_defaults(values: dict[str, Any]) -> None:
    assert standard_digest(values) == standard_digest({"prompt": "a"})


@pytest.mark.parametrize(
    "other",
    [
        standard_digest({"prompt": "a", "n": 2}),
        standard_digest({"prompt": "a", "size": "512x512"}),
        standard_digest({"prompt": "a"}, model="other"),
        standard_digest({"prompt": "a"}, kind="edit"),
        standard_digest({"prompt": "a"}, steps=20),
        standard_digest({"prompt": "a"}, inputs=[("image", UploadedFile(b"png"))]),
        standard_digest({"prompt": "a"}, inputs=[("image", "https://a.example/x.png")]),
    ],
)
def test_standard_compares_everything_else(other: bytes) -> None:
    assert other != standard_digest({"prompt": "a"})


def test_files_are_compared_by_their_bytes_and_urls_by_themselves() -> None:
    file = standard_digest({"prompt": "a"}, inputs=[("image", UploadedFile(b"png", "one.png"))])
    assert file == standard_digest({"prompt": "a"}, inputs=[("image", UploadedFile(b"png", "two.png"))])
    assert file != standard_digest({"prompt": "a"}, inputs=[("image", UploadedFile(b"jpg", "one.png"))])
    assert file != standard_digest({"prompt": "a"}, inputs=[("mask", UploadedFile(b"png", "one.png"))])
