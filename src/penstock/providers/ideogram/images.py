"""What both versions of Ideogram's API share: images that are made while the call waits, errors, common rows."""

from penstock.providers.spec import FailureKind, File, Reply, Result, emulated, passthrough


def read_images(reply: Reply) -> Result:
    """Read images; those that failed the safety check have no URL."""
    images = reply.json["data"]
    safe = [image for image in images if image.get("url") and image.get("is_image_safe", True)]
    if images and not safe:
        return Result(status="failed", failure_kind="refused", message="The image failed the safety check.")
    return Result(
        files=tuple(File(url=image["url"], revised_prompt=image.get("prompt")) for image in safe),
        upstream_id=reply.json.get("request_id") or reply.json.get("generation_id"),
    )


def error_message(reply: Reply) -> str | None:
    error = reply.json.get("error") or reply.json.get("message") or reply.json["detail"]
    return error if isinstance(error, str) else None


def failure_kind(reply: Reply) -> FailureKind | None:
    """Prompts and images that fail the safety check get status 422; malformed requests get 400."""
    return "refused" if reply.status == 422 else None


PROMPT = passthrough("prompt", required=True, max_length=10_000)
N = emulated("n", to="num_images", high=8)
SEED = passthrough("seed", low=0, high=2**31 - 1)
