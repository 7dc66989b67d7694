"""Luma: Ray's films and Uni's pictures, over its Agents API; the older Dream Machine has other keys and addresses."""

from typing import Any

from penstock.providers.convert import both, closest, each, plain_base64, with_unit
from penstock.providers.spec import (
    File,
    FailureKind,
    Model,
    Operation,
    Provider,
    Reply,
    Result,
    Status,
    bearer,
    converted,
    fixed,
    lasting,
    passthrough,
    priced,
    renamed,
    shaped,
    whole,
)
from penstock.values import Frame, InputImage

STATUS: dict[str, Status] = {
    "queued": "queued", "processing": "in_progress", "completed": "completed", "failed": "failed",
}  # fmt: skip
BLAME: dict[str, FailureKind] = {
    "content_moderated": "refused", "image_too_large": "rejected", "unsupported_format": "rejected",
    "corrupt_input": "rejected", "invalid_request": "rejected", "rate_limited": "busy",
}  # fmt: skip
RATIOS = "16:9 9:16 1:1 4:3 3:4 21:9"


def read(reply: Reply) -> Result:
    """Addresses work for an hour; whoever asks again gets fresh ones."""
    job = reply.json
    return Result(
        status=STATUS[job["state"]],
        ref={"id": job["id"]},
        upstream_id=job["id"],
        files=tuple(File(url=one["url"]) for one in job.get("output") or ()),
        kind=BLAME.get(job.get("failure_code") or "", "broken"),
        message=job.get("failure_reason"),
    )


def error(reply: Reply) -> str | None:
    """Undocumented: read as its older service has it, and as most others do."""
    told = reply.json.get("detail") or reply.json["error"]
    return told if isinstance(told, str) else told.get("message")


def media(reference: InputImage) -> dict[str, str]:
    return {"data": plain_base64(reference), "media_type": reference.content_type}


def anchored(fields: dict[str, Any]) -> dict[str, Any]:
    """The first picture goes to the first frame, the second to the last, on a grid of 24 to the second."""
    film = fields["video"]
    if "keyframes" in film:
        last = 24 * int(film.get("duration", "5s").rstrip("s"))
        film["keyframe_indexes"] = [0, last][: len(film["keyframes"])]
    return fields


def edited(fields: dict[str, Any]) -> dict[str, Any]:
    """The first picture is edited, the others guide."""
    source, *guides = fields.pop("images")
    return {**fields, "source": source, **({"image_ref": guides} if guides else {})}


def of_picture(found: list[InputImage]) -> str:
    """A film that begins with a picture has its shape."""
    return closest(*RATIOS.split())(Frame(found[0].width, found[0].height))


# fmt: off
usd = priced("Luma's price list as others recorded it, 2026-11-15; not read there")
page = priced("a stored copy of docs.agents.lumalabs.ai/guides/pricing, looked up 2026-11-15")
PROMPT, USER = passthrough("prompt", required=True, longest=6000), renamed("user", "user_id")
JOB: dict[str, Any] = {"send": "POST /generations", "poll": "GET /generations/{id}", "read": read}
RAY = Operation(task="video", shape=anchored, **JOB, params=whole(
    "video", PROMPT, USER, fixed("type", "video"), lasting(5, 10, to="video.duration", form=with_unit("s"), default=5),
    shaped(RATIOS, "720p", "540p", "1080p", to=("aspect_ratio", "video.resolution")),
    converted("input_reference", ("video.keyframes", "aspect_ratio"), both(each(media), of_picture), most=2),
))
SHAPE = (shaped("1:1 16:9 9:16 3:2 2:3 2:1 1:2 3:1 1:3"), fixed("output_format", "png"))
STILL: dict[str, Any] = {**JOB, "poll_seconds": 2.0, "priced_extras": frozenset({"web_search"})}
UNI = Operation(task="image", **STILL, params=whole("image", PROMPT, USER, fixed("type", "image"), *SHAPE))
EDIT = Operation(task="edit", shape=edited, **STILL, params=whole(
    "edit", PROMPT, USER, fixed("type", "image_edit"), *SHAPE,
    converted("images", "images", each(media), required=True, most=9),
))
LARGE, SMALL, LONG = {"video.resolution": "1080p"}, {"video.resolution": "540p"}, {"video.duration": "10s"}
PROVIDER = Provider(
    slug="luma", name="Luma", docs="https://docs.agents.lumalabs.ai", base_url="https://agents.lumalabs.ai/v1",
    key="LUMA_AGENTS_API_KEY", auth=bearer, error=error,
    models=(
        Model(id="luma-ray-3", upstream="ray-3.2", op=RAY, name="Luma Ray 3.2", prices=(
            usd("3.60", "call", **LARGE, **LONG), usd("1.20", "call", **LARGE), usd("0.45", "call", **SMALL, **LONG),
            usd("0.15", "call", **SMALL), usd("0.90", "call", **LONG), usd("0.30", "call"))),
        Model(id="luma/uni-1", upstream="uni-1", op=UNI, prices=(page("0.0404", "image"),), name="Luma Uni-1"),
        Model(id="luma/uni-1", upstream="uni-1", op=EDIT, name="Luma Uni-1",
              prices=(page("0.0404", "image", "0.003"),)),
    ),
)
