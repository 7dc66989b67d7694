"""The names of rows in provider tables, and the fields of the interface that they are for."""

import pytest

from penstock.fields import TABLES
from penstock.providers import row_names
from penstock.values import EDIT_VIDEO, EXTEND_VIDEO, FIRST_FRAME, REFERENCE_IMAGE


@pytest.mark.parametrize(
    ("row_name", "main_field", "words"),
    [
        ("prompt", "prompt", "`prompt`"),
        ("frame", "size", "`size`, `aspect_ratio`, `resolution`"),
        ("images", "image", "`image`"),
        (EDIT_VIDEO, "input_reference", "`input_reference` with a video to edit"),
        (EXTEND_VIDEO, "input_reference", "`input_reference` with a video to extend"),
    ],
)
def test_callers_read_the_names_of_the_interface(row_name: str, main_field: str, words: str) -> None:
    assert (row_names.main_field(row_name), row_names.row_words(row_name)) == (main_field, words)


@pytest.mark.parametrize(
    ("role", "row_name"),
    [
        ("image", "images"),
        ("mask", "mask"),
        ("reference", "input_reference"),
        (FIRST_FRAME, "input_reference"),
        (REFERENCE_IMAGE, "input_reference"),
        (EDIT_VIDEO, EDIT_VIDEO),
    ],
)
def test_every_input_file_has_a_row(role: str, row_name: str) -> None:
    assert row_names.input_row(role) == row_name


def test_rows_are_for_fields_that_exist_and_have_no_name_of_another_field() -> None:
    fields = {name for table in TABLES.values() for name in table}
    made = {*row_names.MADE_BY_GATEWAY}
    assert {field for name in {*row_names.INTERNAL} - made for field in row_names.fields_of(name)} <= fields
    assert not fields & {*row_names.INTERNAL}
