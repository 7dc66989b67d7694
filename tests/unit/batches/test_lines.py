"""Reading the rows of a batch: JSONL in two forms, CSV with values of the right types, and faults by row and column."""

from typing import Any

import pytest

from penstock.batches import lines
from penstock.batches.lines import (
    CHATS,
    IMAGES,
    ROW_BYTES,
    VIDEOS,
    BadLine,
    Line,
    endpoint_path,
    read_csv,
    read_json,
    read_jsonl,
)
from penstock.errors import InvalidRequest


def only(rows: Any) -> Any:
    [row] = list(rows)
    return row


def fault(row: Line | BadLine) -> tuple[int, str | None]:
    assert isinstance(row, BadLine), row
    return row.number, row.fault.column


def test_a_line_in_openai_form_has_its_own_id_path_and_body() -> None:
    line = b'{"custom_id": "a", "method": "POST", "url": "/v1/images/generations", "body": {"prompt": "x"}}'
    assert only(read_jsonl(line, None, {"model": "m"})) == Line(1, "a", IMAGES, {"model": "m", "prompt": "x"})


def test_a_line_may_be_the_fields_themselves_and_defaults_give_way_to_them() -> None:
    rows = list(read_jsonl(b'\xef\xbb\xbf{"prompt": "x"}\n\n{"prompt": "y", "n": 2}', IMAGES, {"n": 1}))
    assert rows == [Line(1, "1", IMAGES, {"n": 1, "prompt": "x"}), Line(2, "2", IMAGES, {"n": 2, "prompt": "y"})]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        (b"{", None),
        (b"[1]", None),
        (b'{"method": "GET"}', "method"),
        (b'{"url": "/v1/audio/speech", "body": {}}', "url"),
        (b'{"url": 3}', "url"),
        (b'{"custom_id": 7}', "custom_id"),
        (b'{"custom_id": ""}', "custom_id"),
        (b'{"body": 1}', "body"),
        (b'{"body": {}, "prompt": "x"}', "prompt"),
    ],
)
def test_a_faulty_line_is_named_with_its_column(line: bytes, column: str | None) -> None:
    good, bad = read_jsonl(b'{"prompt": "x"}\n' + line, IMAGES, {})
    assert isinstance(good, Line)
    assert fault(bad) == (2, column)


def test_a_row_without_a_path_needs_a_batch_with_an_endpoint() -> None:
    assert fault(only(read_json([{"prompt": "x"}], None, {}))) == (1, "url")


def test_a_line_that_is_too_long_ends_the_reading() -> None:
    with pytest.raises(InvalidRequest, match="more than"):
        list(read_jsonl(b'{"prompt": "' + b"x" * ROW_BYTES + b'"}', IMAGES, {}))


def test_lines_are_whole_wherever_the_pieces_end_in_which_the_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PIECE_BYTES", 7)
    data = b'{"prompt": "first"}\n{"prompt": "second"}\n\n{"prompt": "third"}'
    found = [row.body["prompt"] for row in read_jsonl(data, IMAGES, {}) if isinstance(row, Line)]
    assert found == ["first", "second", "third"]


def test_cells_become_values_of_the_types_of_their_fields() -> None:
    data = b'custom_id,prompt,n,seconds,generate_audio,labels,seed\na,"x, y",2,4.5,true,"{""customer"": ""c""}",\n'
    body = {"prompt": "x, y", "n": 2, "seconds": 4.5, "generate_audio": True, "labels": {"customer": "c"}}
    assert only(read_csv(data, VIDEOS, {})) == Line(1, "a", VIDEOS, body)


def test_a_cell_may_have_several_lines_and_does_not_move_the_number_of_its_row() -> None:
    rows = list(read_csv(b'prompt,n\n"a\nb",1\n\nc,2\n', IMAGES, {}))
    assert [(row.number, row.body) for row in rows if isinstance(row, Line)] == [
        (1, {"prompt": "a\nb", "n": 1}),
        (2, {"prompt": "c", "n": 2}),
    ]


def test_a_chat_in_a_table_is_written_as_prompt_and_system() -> None:
    line = only(read_csv(b"system,prompt\nbe brief,hello\n", CHATS, {"model": "m"}))
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]
    assert line.body == {"model": "m", "messages": messages}


@pytest.mark.parametrize("data", [b"", b",\n1,2\n", b"a,a\n1,2\n", b"a,\n1,2\n", b'a\n"x', b"a\n\xff\n"])
def test_a_table_that_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        list(read_csv(data, IMAGES, {}))


@pytest.mark.parametrize(
    ("data", "column"),
    [(b"prompt\nx,y\n", None), (b"labels\n{x\n", "labels"), (b"prompt,url\nx,/v1/files\n", "url")],
)
def test_a_faulty_row_of_a_table_is_named_with_its_column(data: bytes, column: str | None) -> None:
    assert fault(only(read_csv(data, IMAGES, {}))) == (1, column)


def test_paths_are_those_of_openai_or_of_the_gateway() -> None:
    assert endpoint_path("/v1/videos") == endpoint_path("/compat/v1/videos") == VIDEOS
    assert endpoint_path("/v1/keys") is None
