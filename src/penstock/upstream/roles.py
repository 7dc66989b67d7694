"""What a model uses the input images of a video for: its first frame, its last frame, or references."""

from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import InvalidRequest
from penstock.providers.spec import Model, Param
from penstock.values import FIRST_FRAME, FRAME_ROLES, LAST_FRAME, REFERENCE_IMAGE, VIDEO_ROLES, InputFile


def assign_roles(row: Param, stated: Sequence[str]) -> list[str]:
    """The role of each image, from the roles that the caller stated; other texts state none.

    Without stated roles, as many images as the model has frames are the first and the last frame, and more images are
    all references. Beside stated roles, the first other image is the first frame if there is none yet.
    """
    roles = [role if role in VIDEO_ROLES else "" for role in stated]
    if not any(roles):
        is_frames = len(roles) <= row.frames
        return list(FRAME_ROLES[: len(roles)]) if is_frames else [REFERENCE_IMAGE] * len(roles)
    if "" in roles and row.frames and FIRST_FRAME not in roles:
        roles[roles.index("")] = FIRST_FRAME
    return [role or REFERENCE_IMAGE for role in roles]


def with_roles(row: Param, images: Sequence[InputFile]) -> list[InputFile]:
    """The images with their roles: the first frame, the last frame, then references."""
    roles = assign_roles(row, [image.role for image in images])
    known = [replace(image, role=role) for image, role in zip(images, roles, strict=True)]
    return sorted(known, key=lambda image: VIDEO_ROLES.index(image.role))


def check_roles(model: Model, row: Param, stated: Sequence[str]) -> None:
    """Raise InvalidRequest if the model does not use input images in these roles."""
    roles = set(assign_roles(row, stated))
    most = row.max_items or len(stated)
    problem = ""
    if row.needs_role and not any(role in VIDEO_ROLES for role in stated):
        problem = "takes images whose `role` is `reference`"
    elif REFERENCE_IMAGE in roles and most <= row.frames:
        problem = "takes frames of the video, no images with the role `reference`"
    elif roles & set(FRAME_ROLES) and row.frames == 0:
        problem = "takes images with the role `reference`, no frames of the video"
    elif LAST_FRAME in roles and min(row.frames, most) < 2:
        problem = "takes no last frame"
    elif LAST_FRAME in roles and FIRST_FRAME not in roles:
        problem = "takes a last frame only together with a first frame"
    elif REFERENCE_IMAGE in roles and len(roles) > 1:
        problem = "takes frames or references, not both in one request"
    if problem:
        raise InvalidRequest(f"`input_reference` of {model.id} {problem}.", param="input_reference")
