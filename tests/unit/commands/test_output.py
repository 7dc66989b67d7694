"""What commands print: amounts, sizes, JSON, and files that break off."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.commands.output import save_parts, size_text, usd
from tests.command_line import penstock


def test_amounts_have_the_decimals_they_need() -> None:
    amounts = {0: "$0.00", 2: "$2.00", 0.04: "$0.04", 0.001: "$0.001", 0.000000125: "$0.000000125", 12.5: "$12.50"}
    assert {amount: usd(amount) for amount in amounts} == amounts


def test_sizes_are_short() -> None:
    assert [size_text(size) for size in (0, 1499, 1_500_000)] == ["0 kB", "1 kB", "1.5 MB"]


def test_a_file_is_written_when_it_is_whole(tmp_path: Path) -> None:
    assert save_parts(iter([(3, b"ab"), (3, b"c")]), tmp_path / "out") == 3
    assert (tmp_path / "out").read_bytes() == b"abc"


def test_a_file_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def parts() -> Iterator[tuple[int | None, bytes]]:
        yield 3, b"ab"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        save_parts(parts(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert save_parts(iter([(3, b"ab"), (3, b"c")]), pipe) == 3
        assert os.read(reader, 10) == b"abc"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_what_commands_print_as_json_can_be_read(data_folder: Path, tmp_path: Path) -> None:
    for words in (
        ["keys", "create"],
        ["keys", "list"],
        ["orgs", "create", "--name", "second"],
        ["orgs", "list"],
        ["credit", "add", "--usd", "5"],
        ["webhooks", "list"],
        ["webhooks", "rotate"],
        ["recordings", "list"],
        ["recordings", "export", "--to", str(tmp_path / "recordings")],
        ["models"],
        ["providers"],
        ["settings"],
        ["audit"],
        ["init"],
        ["backup", str(tmp_path / "copy")],
        ["secret", "rotate"],
        ["secret", "reseal"],
    ):
        ended = penstock(*words, "--json", "--data", data_folder)
        assert ended.status == 0, (words, ended.err)
        assert isinstance(json.loads(ended.out), dict | list), words
