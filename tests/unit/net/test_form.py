"""Multipart forms are encoded so that servers read the same fields and files."""

import tracemalloc

from penstock.api.multipart import FormReader
from penstock.fields import UploadedFile
from penstock.net.form import encode_form
from penstock.providers.spec import Upload


def test_a_form_is_read_as_it_was_written() -> None:
    fields = (
        ("prompt", "a pear\r\n--x"),
        ("ü", "é"),
        ("image[]", Upload(b"\r\n--penstock-\x00", "image/png", "a.png")),
        ("image[]", Upload(memoryview(bytearray(b"ab")), "image/jpeg", "b.jpeg")),
        ('a"b', ""),
    )
    content_type, body = encode_form(fields)
    reader = FormReader(content_type, file_bytes=1000)
    for piece in body:
        reader.feed(piece)
    assert len(body) == len(bytes(body))
    assert reader.finish() == (
        ("prompt", "a pear\r\n--x"),
        ("ü", "é"),
        ("image[]", UploadedFile(b"\r\n--penstock-\x00", "a.png", "image/png")),
        ("image[]", UploadedFile(b"ab", "b.jpeg", "image/jpeg")),
        ("a%22b", ""),
    )
    assert encode_form(fields)[0] != content_type


def test_no_name_can_begin_another_header() -> None:
    name = 'a"\r\nx-injected: 1'
    _, body = encode_form(((name, "x"), ("image", Upload(b"x", "image/png", name))))
    assert b"\r\nx-injected" not in bytes(body)


def test_a_file_is_not_copied_as_a_whole() -> None:
    data = bytes(8 * 2**20)
    tracemalloc.start()
    try:
        _, body = encode_form((("image", Upload(data, "image/png", "a.png")),))
        assert sum(map(len, body)) == len(body) > len(data)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
