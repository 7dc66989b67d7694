"""Base64 is decoded in pieces as it would be at once, and no long text is copied as a whole."""

import base64
import hashlib
import random
import tracemalloc
from collections.abc import Callable, Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.fields import UploadedFile
from penstock.generations import validate
from penstock.long_bodies import base64_pieces
from penstock.long_bodies.base64_pieces import (
    FileAsBase64,
    data_uri_start,
    is_data_uri,
    strict_pieces,
    tolerant_pieces,
)
from penstock.recordings.fingerprints import input_digest
from penstock.schema import Call, Caller
from penstock.values import OrgId


@given(some.binary(max_size=60), some.integers(4, 12).map(lambda step: step // 4 * 4), some.randoms())
def test_pieces_are_what_the_standard_library_decodes(data: bytes, step: int, order: random.Random) -> None:
    text = base64.b64encode(data).decode()
    noisy = "".join(letter + order.choice(["", "", "\r\n", " ", "-"]) for letter in text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(base64_pieces, "STEP", step)
        assert b"".join(strict_pieces(f"data:,{text}", 6)) == data
        for given_text in (text, noisy, memoryview(noisy.encode())):
            assert b"".join(tolerant_pieces(given_text)) == data


@pytest.mark.parametrize("text", ["a", "QUJD\u00e9", "QUJDR", "QQ=Q", "===="])
def test_what_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        list(strict_pieces(text))
    if text not in ("QQ=Q", "===="):  # which the standard library tolerates, too
        with pytest.raises(ValueError, match=r".+"):
            list(tolerant_pieces(text))


@given(some.lists(some.sampled_from(["QUJD", "QUI=", "QQ==", "====", "QQ", "=", "A"]), max_size=6).map("".join))
def test_pieces_refuse_what_the_whole_text_would_be_refused_for(text: str) -> None:
    """Such as padding at the end of a piece that is not the last one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(base64_pieces, "STEP", 4)
        at_once = _decoded(lambda: [msgspec.convert(text, bytes)])
        assert _decoded(lambda: strict_pieces(text)) == at_once
        assert _decoded(lambda: strict_pieces(memoryview(text.encode()))) == at_once


def _decoded(decode: Callable[[], Iterable[bytes]]) -> bytes | None:
    try:
        return b"".join(decode())
    except ValueError:
        return None


def test_the_start_of_a_data_uri() -> None:
    assert all(map(is_data_uri, ("data:,x", "DATA:x")))
    assert not any(map(is_data_uri, ("https://a.test", None, b"data:")))
    assert data_uri_start("data:image/png;base64,QUJD") == 22
    assert data_uri_start("data:" + "a" * 10**6) == 10**6 + 5


def peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_text_of_a_large_file_is_held_once() -> None:
    """It grows piece by piece: pieces that are joined at the end would be a second copy, made in one step."""
    data = bytes(range(256)) * 2**14
    texts: list[str] = []
    assert peak(lambda: texts.append(str(FileAsBase64(data, "data:,")))) < 1.5 * len(data) * 4 / 3
    assert texts == ["data:," + base64.b64encode(data).decode()]


def call_with_form(*parts: tuple[str, UploadedFile | str]) -> Call:
    return Call(
        id="", caller=Caller(org_id=OrgId(""), key_id=""), endpoint="", at_ms=0, started=0, is_form=True, form=parts
    )


def test_digests_of_large_inputs_copy_no_large_part_of_them() -> None:
    """They are computed in a thread, which lets no other one run while it makes a copy."""
    data = random.Random(1).randbytes(24 * 2**20)
    uri = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    not_base64 = uri + "\u00e9"
    form = call_with_form(("image", UploadedFile(data)), ("prompt", "a pear"))
    found = [
        peak(lambda: input_digest(uri)),
        peak(lambda: input_digest(not_base64)),
        peak(lambda: input_digest("https://a.test/" + "a" * 2**20)),
        peak(lambda: validate._body_digest(form)),
    ]
    assert max(found) < 8 * 2**20, found
    assert input_digest(not_base64) == hashlib.sha256(not_base64.encode()).hexdigest()
    assert input_digest(uri) == input_digest(UploadedFile(data)) == hashlib.sha256(data).hexdigest()


def test_the_digest_of_a_form_is_equal_for_equal_parts_only() -> None:
    forms = [
        (),
        (("image", UploadedFile(b"ab")),),
        (("image", UploadedFile(b"a")), ("b", "")),
        (("image", "ab"),),
        (("prompt", "a"), ("prompt", "b")),
        (("prompt", "b"), ("prompt", "a")),
    ]
    digests = [validate._body_digest(call_with_form(*parts)) for parts in forms]
    assert len(set(digests)) == len(forms)
    assert digests == [validate._body_digest(call_with_form(*parts)) for parts in forms]
