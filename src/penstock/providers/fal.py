"""fal: models of many makers behind one queue, whose finished jobs tell only with the result whether they went well."""

from typing import Any

from penstock.convert import data_uri, each, ends, first, number_word, on_off, pixels, with_unit, word
from penstock.providers.spec import (
    File, Kind, Model, Operation, Param, Price, Provider, Reply, Result, Status, Task, converted, emulated, fixed,
    header, lasting, passthrough, priced, renamed, shaped, whole,
)  # fmt: skip

STATUS: dict[str, Status] = {"IN_QUEUE": "queued", "IN_PROGRESS": "in_progress", "COMPLETED": "completed"}
GAVE_UP = ("request_timeout", "startup_timeout", "runner_", "internal_error")  # it could not run the model at all
BROKEN = {"internal_server_error", "generation_timeout", "downstream_service_error", "downstream_service_unavailable"}


# fmt: off
def read(reply: Reply) -> Result:
    """The queue speaks of a request and its status; a result is in the model's own words."""
    answer = reply.json
    if "request_id" not in answer:
        return read_result(answer)
    told = str(answer.get("error_type"))
    status = "failed" if told.startswith(GAVE_UP) else STATUS[answer.get("status", "IN_QUEUE")]
    ref = {name: answer[name] for name in ("status_url", "response_url", "cancel_url") if name in answer}
    return Result(status="cancelled" if told == "client_cancelled" else status, ref=ref, message=answer.get("error"),
                  upstream_id=answer["request_id"])


def read_result(answer: Any) -> Result:
    """What its checker objects to comes back as a black picture."""
    made = [*(answer.get("images") or answer.get("videos") or ()), answer.get("image"), answer.get("video")]
    flagged = answer.get("has_nsfw_concepts") or []
    fine = [one for number, one in enumerate(made) if one and one.get("url") and not any(flagged[number:number + 1])]
    if any(flagged) and not fine:
        return Result(status="failed", kind="refused", message="The safety checker objected to what was made.")
    words = answer.get("revised_prompt")
    return Result(files=tuple(File(one["url"], None, one.get("content_type"), words) for one in fine))


def error(reply: Reply) -> str | None:
    detail = reply.json["detail"]
    return detail if isinstance(detail, str) else detail[0]["msg"]


def kind(reply: Reply) -> Kind | None:
    types = {one["type"] for one in reply.json["detail"]}
    return "refused" if "content_policy_violation" in types else "broken" if types & BROKEN else None


def model(name: str, path: str, task: Task, rows: tuple[Param, ...], prices: tuple[Price, ...], **more: Any) -> Model:
    op = Operation(task=task, params=whole(task, *rows), send="POST /{model}", poll="GET {status_url}", read=read,
                   fetch="GET {response_url}", cancel="PUT {cancel_url}", priced_extras=PRICED,
                   callback_field="?fal_webhook", **more)
    return Model(id=name, upstream=path, op=op, prices=prices, priority=10)


def stills(name: str, path: str, most: int, rows: tuple[Param, ...], *prices: Price) -> tuple[Model, ...]:
    """One endpoint makes pictures; another, where there is one, edits so many of them."""
    pictures = converted("images", "image_urls", each(data_uri), required=True, most=most)
    made = model(name, path, "image", (PROMPT, *rows), prices, poll_seconds=1.0)
    edit = path.removesuffix("/text-to-image") + "/edit"
    return (made, model(name, edit, "edit", (PROMPT, pictures, *rows), prices, poll_seconds=1.0)) if most else (made,)


def films(name: str, text: str, frames: tuple[Param, Param], rows: tuple[Param, ...], image: Param, *prices: Price,
          **more: Any) -> tuple[Model, ...]:
    """One endpoint takes words and a shape, another moves the caller's picture, which has one."""
    moving = text.removesuffix("/text-to-video") + "/image-to-video"
    return (model(name, text, "video", (PROMPT, frames[0], *rows), prices, **more),
            model(name, moving, "video", (PROMPT, frames[1], image, *rows), prices, **more))


def size(**limits: int) -> Param:
    return converted("frame", ("image_size.width", "image_size.height"), pixels(**limits))


def begins(to: str) -> Param:
    return converted("input_reference", to, first(data_uri), required=True, most=1)


def begins_and_ends(*to: str) -> Param:
    return converted("input_reference", to, ends(data_uri), required=True, most=2)


def silent(fields: dict[str, Any]) -> dict[str, Any]:
    """Unless asked for, as on Kling's own service: sound costs half as much again, or more."""
    return {"generate_audio": False, **fields}


# How each price is known: none was read at fal itself.
usd = priced("a stored copy of the model's llms.txt on fal.ai, looked up 2026-11-15")
listed = priced("litellm 1.108.4's price table, looked up 2026-11-15; not checked with fal")
hearsay = priced("tables in other projects, looked up 2026-11-15; not checked with fal")
MP, PICTURE = "started_megapixel", "image"
PRICED = frozenset("upscale_factor upscale_mode target_resolution enable_web_search rendering_speed multi_prompt "
                   "elements voice_ids".split())
PROMPT, NOT = passthrough("prompt", required=True), passthrough("negative_prompt")
PNG, N = fixed("output_format", "png"), emulated("n", "num_images", high=4)
SOUND = passthrough("generate_audio", one_of=(True, False))
RATIOS = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 21:9"
KONTEXT = (converted("images", "image_url", first(data_uri), required=True, most=1), N, PNG,
           shaped("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9 9:21"),
           converted("prompt_enhancement", "enhance_prompt", on_off(True, False)))
IDEOGRAM = (size(largest=1536), N, converted("prompt_enhancement", "expand_prompt", on_off(True, False)),
            converted("quality", "rendering_speed", word({"low": "TURBO", "hd": "QUALITY", "high": "QUALITY"})))
SEEDREAM = (size(least=2560 * 1440, largest=4096), N)
THINKING = converted("thinking", "thinking_level", word({"minimal": "minimal"}), one_of=("off", "minimal"))
ENLARGED = (converted("images", "image_url", first(data_uri), required=True, most=1),)
KLING_FRAMES = (shaped("16:9 9:16 1:1"), shaped())
KLING_5, KLING_15 = lasting(5, 10, form=number_word, default=5), lasting(*range(3, 16), form=number_word, default=5)
VEO = ((shaped("16:9 9:16", "720p", "1080p", "4k"), shaped("", "720p", "1080p", "4k")),
       (lasting(4, 6, 8, form=with_unit("s"), default=8), NOT, SOUND), begins("image_url"))
WAN = (shaped("16:9 9:16 1:1 4:3 3:4", "720p", "1080p"), shaped("", "720p", "1080p"))

MODELS = (
    *stills("flux-schnell", "fal-ai/flux/schnell", 0, (size(largest=4096), N, PNG), usd("0.003", MP)),
    *stills("flux-dev", "fal-ai/flux/dev", 0, (size(largest=4096), N, PNG), listed("0.025", MP)),
    *stills("flux-2-pro", "fal-ai/flux-2-pro", 8, (size(largest=2048), PNG), usd("0.015", MP, "0.015", "0.015")),
    *stills("flux-2-max", "fal-ai/flux-2-max", 8, (size(largest=2048), PNG), usd("0.03", MP, "0.03", "0.04")),
    *stills("flux-2-flex", "fal-ai/flux-2-flex", 10, (size(largest=2048), PNG), usd("0.05", MP, "0.05")),
    model("flux-kontext-pro", "fal-ai/flux-pro/kontext", "edit", (PROMPT, *KONTEXT), (usd("0.04", PICTURE),)),
    model("flux-kontext-max", "fal-ai/flux-pro/kontext/max", "edit", (PROMPT, *KONTEXT), (hearsay("0.08", PICTURE),)),
    *stills("seedream-4", "fal-ai/bytedance/seedream/v4/text-to-image", 10, (size(least=960 * 960, largest=4096), N),
            hearsay("0.03", PICTURE)),
    *stills("seedream-4.5", "fal-ai/bytedance/seedream/v4.5/text-to-image", 10, SEEDREAM, hearsay("0.04", PICTURE)),
    *stills("seedream-5", "bytedance/seedream/v5/lite/text-to-image", 10, SEEDREAM, usd("0.035", PICTURE)),
    *stills("nano-banana", "fal-ai/nano-banana", 10, (shaped(RATIOS), N, PNG), listed("0.039", PICTURE)),
    *stills("nano-banana-2", "fal-ai/nano-banana-2", 14, (shaped(RATIOS, "1K", "2K", "4K"), N, PNG, THINKING),
            listed("0.12", PICTURE, resolution="2K"), listed("0.16", PICTURE, resolution="4K"),
            listed("0.08", PICTURE)),
    *stills("nano-banana-pro", "fal-ai/nano-banana-pro", 14, (shaped(RATIOS, "1K", "2K", "4K"), N, PNG),
            listed("0.30", PICTURE, resolution="4K"), listed("0.15", PICTURE)),
    *stills("ideogram-v3", "fal-ai/ideogram/v3", 0, IDEOGRAM, usd("0.03", PICTURE, rendering_speed="TURBO"),
            usd("0.09", PICTURE, rendering_speed="QUALITY"), usd("0.06", PICTURE)),
    *stills("recraft-v3", "fal-ai/recraft/v3/text-to-image", 0, (size(largest=2048),), listed("0.04", PICTURE)),
    *stills("recraft-v4", "fal-ai/recraft/v4.1/text-to-image", 0, (size(largest=2048),), usd("0.035", PICTURE)),
    *stills("qwen-image", "fal-ai/qwen-image", 0, (size(largest=2048), N, PNG), usd("0.02", MP)),
    model("clarity-upscaler", "fal-ai/clarity-upscaler", "upscale", (*ENLARGED, passthrough("prompt"), renamed(
        "scale_factor", "upscale_factor", low=1, high=4, default=2)), (usd("0.03", MP),)),
    model("seedvr-upscale", "fal-ai/seedvr/upscale/image", "upscale", (*ENLARGED, PNG, renamed(
        "scale_factor", "upscale_factor", low=1, high=10, default=2)), (usd("0.001", MP),)),
    *films("kling-2.5-turbo", "fal-ai/kling-video/v2.5-turbo/pro/text-to-video", KLING_FRAMES, (KLING_5, NOT),
           begins_and_ends("image_url", "tail_image_url"), usd("0.07")),
    *films("kling-2.6", "fal-ai/kling-video/v2.6/pro/text-to-video", KLING_FRAMES, (KLING_5, NOT, SOUND),
           begins_and_ends("start_image_url", "end_image_url"), usd("0.14", generate_audio=True), usd("0.07"),
           shape=silent),
    *films("kling-3", "fal-ai/kling-video/v3/standard/text-to-video", KLING_FRAMES, (KLING_15, NOT, SOUND),
           begins_and_ends("start_image_url", "end_image_url"), hearsay("0.126", generate_audio=True), hearsay("0.084"),
           shape=silent),
    *films("kling-3-pro", "fal-ai/kling-video/v3/pro/text-to-video", KLING_FRAMES, (KLING_15, NOT, SOUND),
           begins_and_ends("start_image_url", "end_image_url"), hearsay("0.168", generate_audio=True), hearsay("0.112"),
           shape=silent),
    *films("veo-3.1", "fal-ai/veo3.1", *VEO, usd("0.40", generate_audio=False, resolution="4k"),
           usd("0.20", generate_audio=False), usd("0.60", resolution="4k"), usd("0.40")),
    *films("veo-3.1-fast", "fal-ai/veo3.1/fast", *VEO, usd("0.30", generate_audio=False, resolution="4k"),
           usd("0.10", generate_audio=False), usd("0.35", resolution="4k"), usd("0.15")),
    *films("wan-2.6", "wan/v2.6/text-to-video", WAN, (lasting(5, 10, 15, form=number_word, default=5), NOT),
           begins("image_url"), usd("0.15", resolution="1080p"), usd("0.10")),
    *films("wan-2.7", "fal-ai/wan/v2.7/text-to-video", WAN, (lasting(*range(2, 16), default=5), NOT),
           begins_and_ends("image_url", "end_image_url"), usd("0.10")),
    *films("seedance-2", "bytedance/seedance-2.0/text-to-video",
           (shaped("16:9 9:16 1:1 4:3 3:4 21:9", "720p", "480p", "1080p", "4k"),
            shaped("", "720p", "480p", "1080p", "4k")),
           (lasting(*range(4, 16), form=number_word, default=5), renamed("user", "end_user_id")),
           begins_and_ends("image_url", "end_image_url"), listed("0.1346", resolution="480p"),
           listed("0.682", resolution="1080p"), listed("1.5552", resolution="4k"), listed("0.3034")),
    *films("hailuo-2.3", "fal-ai/minimax/hailuo-2.3/standard/text-to-video", (shaped(), shaped()),
           (lasting(6, 10, form=number_word, default=6),), begins("image_url"), hearsay("0.56", "call", duration="10"),
           hearsay("0.28", "call")),
    *films("vidu-q3", "fal-ai/vidu/q3/text-to-video", (shaped("16:9 9:16 1:1 4:3 3:4", "720p", "540p", "1080p"),
           shaped("", "720p", "540p", "1080p")), (lasting(*range(1, 17), default=5),),
           begins_and_ends("image_url", "end_image_url"), usd("0.07", resolution="540p"), usd("0.154")),
    *films("grok-imagine-video", "xai/grok-imagine-video/text-to-video",
           (shaped("16:9 9:16 1:1 4:3 3:4 3:2 2:3", "720p", "480p"), shaped("", "720p", "480p")),
           (lasting(*range(1, 16), default=6),), begins("image_url"),
           usd("0.05", input_usd="0.002", resolution="480p"), usd("0.07", input_usd="0.002")),
)
PROVIDER = Provider(
    slug="fal", name="fal", docs="https://fal.ai/docs", base_url="https://queue.fal.run", key="FAL_KEY",
    auth=header("authorization", "Key "), error=error, kind=kind, models=MODELS,
    # Files are copied as soon as they are made; fal need not keep them for longer than a day. Its callbacks are signed
    # with Ed25519 (keys at rest.fal.ai): request id, user id, timestamp and the body's SHA-256 in hex, a line each.
    headers={"x-fal-object-lifecycle-preference": '{"expiration_duration_seconds": 86400}'},
)
