"""What input images of videos are used for: assigned roles, and the roles that a model takes."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest
from penstock.providers.spec import Model, Operation, Param, Result, converted
from penstock.upstream import roles
from penstock.values import InputFile

FIRST, LAST, REFERENCE, PLAIN = "first_frame", "last_frame", "reference_image", "reference"


def row(**limits: Any) -> Param:
    return converted("input_reference", to="images", convert=list, **limits)


@pytest.mark.parametrize(
    ("frames", "stated", "assigned"),
    [
        (2, [PLAIN], [FIRST]),
        (2, [PLAIN, PLAIN], [FIRST, LAST]),
        (2, [PLAIN] * 3, [REFERENCE] * 3),
        (1, [PLAIN, PLAIN], [REFERENCE, REFERENCE]),
        (0, [PLAIN], [REFERENCE]),
        (2, [REFERENCE], [REFERENCE]),
        (2, [LAST, FIRST], [LAST, FIRST]),
        (2, [PLAIN, LAST], [FIRST, LAST]),
        (2, [LAST, PLAIN], [LAST, FIRST]),
        (2, [FIRST, PLAIN], [FIRST, REFERENCE]),
        (0, [REFERENCE, PLAIN], [REFERENCE, REFERENCE]),
    ],
)
def test_every_image_gets_a_role(frames: int, stated: list[str], assigned: list[str]) -> None:
    assert roles.assign_roles(row(frames=frames), stated) == assigned


def test_the_first_frame_is_sent_first() -> None:
    images = [InputFile(b"end", "image/png", 1, 1, LAST), InputFile(b"begin", "image/png", 1, 1, FIRST)]
    assert [image.data for image in roles.with_roles(row(), images)] == [b"begin", b"end"]


@pytest.mark.parametrize(
    ("limits", "stated", "problem"),
    [
        ({"max_items": 2}, [REFERENCE], "no images with the role `reference`"),
        ({"max_items": 1}, [FIRST, LAST], "takes no last frame"),
        ({"max_items": 7, "frames": 1}, [FIRST, LAST], "takes no last frame"),
        ({"max_items": 2}, [LAST], "only together with a first frame"),
        ({"max_items": 9}, [FIRST, REFERENCE], "not both"),
        ({"max_items": 3, "frames": 0}, [FIRST], "no frames of the video"),
        ({"max_items": 3, "frames": 0, "needs_role": True}, [PLAIN], "whose `role` is `reference`"),
        ({"max_items": 9}, [REFERENCE], None),
        ({"max_items": 2}, [FIRST, LAST], None),
        ({"max_items": 3, "frames": 0}, [PLAIN], None),
        ({"max_items": 3, "frames": 0, "needs_role": True}, [REFERENCE], None),
    ],
)
def test_roles_that_a_model_does_not_take_are_refused(
    limits: dict[str, Any], stated: list[str], problem: str | None
) -> None:
    images = row(**limits)
    op = Operation(task="video", send="POST /", params=(images,), read=lambda reply: Result())
    model = Model(id="lab/reel", upstream="reel", op=op, prices=())
    if problem is None:
        return roles.check_roles(model, images, stated)
    with pytest.raises(InvalidRequest, match=problem) as refused:
        roles.check_roles(model, images, stated)
    assert refused.value.param == "input_reference"
    return None
