"""The names of rows in provider tables: which fields of the interface they are for, and which the gateway fills in."""

from collections.abc import Mapping

from penstock.errors import quoted
from penstock.values import EDIT_VIDEO, EXTEND_VIDEO, INPUT_VIDEOS

# The fields of rows that have another name than their field; `size` comes first because it alone can stand for a frame.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "frame": ("size", "aspect_ratio", "resolution"),
    "images": ("image",),
    EDIT_VIDEO: ("input_reference",),
    EXTEND_VIDEO: ("input_reference",),
}
_VIDEO_WORDS = {EDIT_VIDEO: "a video to edit", EXTEND_VIDEO: "a video to extend"}

# Rows that are for no field: the gateway makes their values.
MADE_BY_GATEWAY = ("random_seed", "random_id", "own_id")
# Names of rows that callers cannot use as names of fields.
INTERNAL = (*_FIELDS, *MADE_BY_GATEWAY)
INPUT_ROWS = ("images", "mask", "input_reference", *INPUT_VIDEOS)  # the rows for input files


def fields_of(row_name: str) -> tuple[str, ...]:
    """The fields of the interface that a row is for."""
    return _FIELDS.get(row_name, (row_name,))


def main_field(row_name: str) -> str:
    """The field of the interface that errors about a row name."""
    return fields_of(row_name)[0]


def row_words(row_name: str) -> str:
    """What texts for callers call a row: `prompt`, or `input_reference` with a video to edit."""
    fields = quoted(fields_of(row_name))
    return f"{fields} with {_VIDEO_WORDS[row_name]}" if row_name in _VIDEO_WORDS else fields


def input_row(role: str) -> str:
    """The name of the row for an input file with this role."""
    if role == "image":
        return "images"
    return role if role in INPUT_ROWS else "input_reference"
