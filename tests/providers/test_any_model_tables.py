"""The tables that are made of stored schemas of real models are those that somebody has looked at."""

import difflib

from penstock.values import EDIT_VIDEO, EXTEND_VIDEO
from tests.any_model import TABLES, lines, models


def test_tables_of_real_models_are_as_they_were() -> None:
    changes = list(difflib.unified_diff(TABLES.read_text().splitlines(), list(lines()), "tables.txt", "now", n=1))
    hint = "if this is right, run `python -m tests.any_model` and read the difference"
    assert not changes, "\n".join([*changes[:60], hint])


def test_the_models_are_of_all_kinds() -> None:
    found = [made for _, made in models()]
    offered = [model.op.task for made in found if not isinstance(made, str) for model in made]
    assert len([made for made in found if not isinstance(made, str)]) >= 40
    assert {"image", "edit", "upscale", "video", "sound"} == set(offered)
    taken = {row.name for made in found if not isinstance(made, str) for model in made for row in model.op.params}
    assert {"input_reference", EDIT_VIDEO, EXTEND_VIDEO} <= taken
    assert len(found) > len([made for made in found if not isinstance(made, str)])
