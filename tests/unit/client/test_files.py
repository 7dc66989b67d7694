"""Inputs that are read, and outputs that are written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.files import input_url, numbered_paths, output_paths, write_parts
from penstock.client.results import generation


def test_files_and_bytes_become_data_uris_and_urls_stay(tmp_path: Path) -> None:
    (tmp_path / "fox.webp").write_bytes(b"fox")
    assert input_url(tmp_path / "fox.webp") == "data:image/webp;base64,Zm94"
    assert input_url(b"fox") == "data:image/png;base64,Zm94"
    assert input_url("https://images.test/fox.png") == "https://images.test/fox.png"


def test_a_text_is_never_the_path_of_a_file(tmp_path: Path) -> None:
    """Programs pass on what their users type."""
    (tmp_path / "secret").write_bytes(b"secret")
    with pytest.raises(ValueError, match="give a file as a Path"):
        input_url(str(tmp_path / "secret"))


def test_several_files_are_numbered() -> None:
    assert numbered_paths(Path("a/fox.png"), 1) == [Path("a/fox.png")]
    assert numbered_paths(Path("a/fox.png"), 2) == [Path("a/fox-1.png"), Path("a/fox-2.png")]


def test_what_is_not_finished_has_nothing_to_save(tmp_path: Path) -> None:
    started = generation({"id": "req_1", "object": "video", "status": "queued"})
    with pytest.raises(ValueError, match="req_1 has no files yet"):
        output_paths(started, tmp_path / "fox.mp4")


def test_a_file_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "fox.png"
    assert write_parts([b"one", b"two"], path) == 6

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        write_parts(broken(), path)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("fox.png", b"onetwo")]
