"""Multipart forms: fields and files in order, limits, and malformed forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import multipart
from penstock.errors import InvalidRequest, PayloadTooLarge
from penstock.fields import UploadedFile
from tests.work import lines_run

KIND = "multipart/form-data; boundary=XX"
END = b"--XX--\r\n"
FILE_BYTES = 5 * 10**6


def part(name: str, value: bytes, *, filename: str | None = None, more: str = "") -> bytes:
    file = "" if filename is None else f'; filename="{filename}"'
    head = f'--XX\r\nContent-Disposition: form-data; name="{name}"{file}\r\n{more}\r\n'
    return head.encode() + value + b"\r\n"


def read(*chunks: bytes, kind: str = KIND) -> tuple[tuple[str, str | UploadedFile], ...]:
    reader = multipart.FormReader(kind, FILE_BYTES)
    for chunk in chunks:
        reader.feed(chunk)
    return reader.finish()


def test_fields_and_files_come_in_order() -> None:
    sent = (
        part("prompt", "a fox é".encode())
        + part("image[]", b"\x89PNG\r\n--X", filename="one.png", more="Content-Type: image/png; x=y\r\n")
        + part("image[]", b"", filename="")
        + part("n", b"2")
        + END
    )
    expected = (
        ("prompt", "a fox é"),
        ("image[]", UploadedFile(b"\x89PNG\r\n--X", "one.png", "image/png")),
        ("image[]", UploadedFile(b"")),
        ("n", "2"),
    )
    assert read(sent) == expected
    assert read(*(sent[at : at + 1] for at in range(len(sent)))) == expected


def test_an_empty_form_is_a_form() -> None:
    assert read(END) == ()


@pytest.mark.parametrize(
    ("filename", "kept"),
    [
        ("../../x", "x"),
        ("/etc/passwd", "passwd"),
        ("C:\\\\Users\\\\me\\\\fox.png", "fox.png"),
        ("..", ".."),
        ("a\tb.png", "ab.png"),
        ("x" * 300, "x" * 255),
    ],
)
def test_paths_are_removed_from_file_names(filename: str, kept: str) -> None:
    [(_, file)] = read(part("image", b"x", filename=filename) + END)
    assert isinstance(file, UploadedFile)
    assert file.filename == kept


@pytest.mark.parametrize(
    "kind",
    ["multipart/form-data", "multipart/form-data; boundary=", f"multipart/form-data; boundary={'b' * 71}"],
)
def test_a_boundary_has_1_to_70_characters(kind: str) -> None:
    with pytest.raises(InvalidRequest, match="boundary"):
        read(END, kind=kind)
    read(b"--" + b"b" * 70 + b"--\r\n", kind=f"multipart/form-data; boundary={'b' * 70}")


MALFORMED = {
    "nothing": b"",
    "no boundary": b"nonsense",
    "no last boundary": part("a", b"1"),
    "cut in a header": b'--XX\r\nContent-Disposition: form-data; name="a"',
    "another boundary": part("a", b"1").replace(b"XX", b"YY") + b"--YY--\r\n",
    "a megabyte of line ends first": b"\r\n" * 500_000 + part("a", b"1") + END,
    "no name": b"--XX\r\nContent-Disposition: form-data\r\n\r\n1\r\n" + END,
    "empty name": part("", b"1") + END,
    "long name": part("a" * 257, b"1") + END,
    "no disposition": b"--XX\r\nContent-Type: text/plain\r\n\r\n1\r\n" + END,
    "no headers": b"--XX\r\n\r\n1\r\n" + END,
    "many headers": part("a", b"1", more="X: y\r\n" * 9) + END,
    "long header": part("a", b"1", more=f"X: {'y' * 5000}\r\n") + END,
    "form in a form": part("a", b"1", more="Content-Type: multipart/mixed; boundary=YY\r\n") + END,
    "encoded part": part("a", b"MQ==", more="Content-Transfer-Encoding: base64\r\n") + END,
    "not UTF-8": part("a", b"\xff") + END,
    "NUL": part("a", b"a\x00b") + END,
    "NUL in a name": part("a\x00", b"1") + END,
    "17 files": b"".join(part("image[]", b"x", filename="x") for _ in range(17)) + END,
    "65 fields": b"".join(part(f"f{number}", b"x") for number in range(65)) + END,
    "many tiny parts": b"--XX\r\nA: b\r\n\r\nx\r\n" * 50_000 + END,
}


def pieces(sent: bytes) -> list[bytes]:
    return [sent[at : at + 65536] for at in range(0, len(sent), 65536)]


class CountingReader(multipart.FormReader):
    """Counts the calls of the parser and the bytes that it passes on."""

    def __init__(self) -> None:
        super().__init__(KIND, FILE_BYTES)
        self.fed = 0
        self.calls = 0
        self.copied = 0

    def read_form(self, sent: bytes) -> None:
        for piece in pieces(sent):
            self.fed += len(piece)
            self.feed(piece)
        self.finish()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._count(start, end)
        super()._on_header_field(data, start, end)

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._count(start, end)
        super()._on_header_value(data, start, end)

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._count(start, end)
        super()._on_part_data(data, start, end)

    def _count(self, start: int, end: int) -> None:
        self.calls += 1
        self.copied += end - start


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_forms_are_refused_in_one_pass(name: str) -> None:
    """No byte is copied twice, and a large form is refused within its first piece."""
    sent = MALFORMED[name]
    reader = CountingReader()
    with pytest.raises(InvalidRequest):
        reader.read_form(sent)
    assert reader.fed <= 65536
    assert reader.copied <= reader.fed
    assert reader.calls < 1000


@pytest.mark.parametrize("filler", [b"\r", b"\r\n", b"\r\n-", b"\r\n--", b"\r\n--X", b"\r\n--XY"])
def test_work_grows_in_proportion_to_bytes_that_look_like_a_boundary(filler: bytes) -> None:
    def parse(size: int) -> None:
        data = filler * (size // len(filler)) + b"x"
        [(_, file)] = read(*pieces(part("image", data, filename="x") + END))
        assert isinstance(file, UploadedFile)
        assert file.data == data

    parse(4_000_000)
    once, twice = (lines_run(lambda size=size: parse(size)) for size in (60_000, 120_000))  # type: ignore[misc]
    assert twice < 2.5 * once


def test_a_field_has_at_most_256_kibibytes() -> None:
    [(_, text)] = read(part("prompt", b"x" * multipart.FIELD_BYTES) + END)
    assert isinstance(text, str)
    assert len(text) == 256 * 1024
    with pytest.raises(PayloadTooLarge) as problem:
        read(part("prompt", b"x" * (multipart.FIELD_BYTES + 1)) + END)
    assert problem.value.param == "prompt"


def test_the_allowed_number_of_files_and_fields_is_accepted() -> None:
    files = b"".join(part("image[]", b"x", filename="x") for _ in range(16))
    fields = b"".join(part(f"f{number}", b"x") for number in range(64))
    assert len(read(files + fields + END)) == 80


NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=20)


@given(
    st.lists(st.tuples(NAMES, st.text(st.characters(exclude_characters="\0", codec="utf-8"))), max_size=10),
    st.integers(1, 50),
)
def test_a_form_is_parsed_alike_however_it_is_split(pairs: list[tuple[str, str]], step: int) -> None:
    sent = b"".join(part(name, value.encode()) for name, value in pairs) + END
    assert read(*(sent[at : at + step] for at in range(0, len(sent), step))) == tuple(pairs)


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_random_bytes_are_parsed_or_refused(chunks: list[bytes]) -> None:
    try:
        read(*chunks)
    except InvalidRequest:
        return


def test_a_file_that_is_too_large_is_refused_before_it_is_complete() -> None:
    reader = multipart.FormReader(KIND, FILE_BYTES)
    reader.feed(part("image", b"", filename="a.png")[:-2])
    for _ in range(FILE_BYTES // 1000):
        reader.feed(b"x" * 1000)
    with pytest.raises(PayloadTooLarge) as caught:
        reader.feed(b"x")
    assert (caught.value.param, str(FILE_BYTES) in caught.value.message) == ("image", True)
    assert len(read(part("image", b"x" * FILE_BYTES, filename="a.png"), END)) == 1


def test_a_part_is_a_file_by_its_type_or_a_name_in_another_charset() -> None:
    png = b"\x89PNG\r\n"
    typed = part("image", png, more="Content-Type: image/png\r\n")
    head = b"--XX\r\nContent-Disposition: form-data; name=\"image\"; filename*=UTF-8''f%C3%A9.png\r\n\r\n"
    assert read(typed + END) == (("image", UploadedFile(png, "", "image/png")),)
    (_, named) = read(head + png + b"\r\n" + END)[0]
    assert isinstance(named, UploadedFile)
    assert named.data == png
    assert read(part("prompt", b"x", more="Content-Type: text/plain\r\n") + END) == (("prompt", "x"),)
