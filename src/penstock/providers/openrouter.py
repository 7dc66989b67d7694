"""OpenRouter: any chat model that has a name there, and pictures and films of many makers, at the cost it reports."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from penstock.convert import both, closest, data_uri, each, tier
from penstock.providers.compatible import STATUS, talk
from penstock.providers.spec import (
    File, Kind, Model, Operation, Price, Provider, Reply, Result, bearer, converted, fixed, lasting, passthrough,
    priced, shaped, whole,
)  # fmt: skip
from penstock.values import Reference

# What a routed chat may cost at most is told to the router, so that what is set aside is always enough.
MOST = {"prompt": "15", "completion": "75", "request": "0.05"}
TALK = talk(fixed("provider.max_price", MOST), priced_extras=frozenset({"plugins", "web_search_options"}))
CHAT = Price(unit="token", usd="0.000075", input_usd="0.000015", each_usd="0.05",
             note="the most that is accepted; what is reported is charged, 2026-11")  # fmt: skip
RATIOS = "1:1 1:2 2:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 9:21 21:9 1:4 4:1 1:8 8:1"


# fmt: off
def cost(answer: dict[str, Any]) -> str | None:
    usd = (answer.get("usage") or {}).get("cost")
    return None if usd is None else str(usd)


def read_pictures(reply: Reply) -> Result:
    made = tuple(File(data=one["b64_json"], content_type=one.get("media_type")) for one in reply.json["data"])
    return Result(files=made, cost_usd=cost(reply.json))


def read_film(reply: Reply) -> Result:
    """Files are fetched from the router itself, whether or not it has signed an address for them."""
    job = reply.json
    count = len(job.get("unsigned_urls") or ()) if job["status"] == "completed" else 0
    content = f"/videos/{job['id']}/content?index="
    files = tuple(File(f"{content}{number}", private=True, content_type="video/mp4") for number in range(count))
    return Result(status=STATUS[job["status"]], files=files, ref={"id": job["id"]}, upstream_id=job["id"],
                  message=job.get("error"), cost_usd=cost(job))


def error_text(reply: Reply) -> str | None:
    """Of a maker's error only the maker's own words are of use."""
    error = reply.json["error"]
    raw = (error.get("metadata") or {}).get("raw")
    return f"{error['message']}: {raw}" if isinstance(raw, str) else error["message"]


def error_kind(reply: Reply) -> Kind | None:
    told = reply.json["error"].get("metadata") or {}
    unfit = told.get("error_type") in ("content_policy_violation", "refusal") or told.get("reasons")
    return "refused" if unfit else None


def picture(reference: Reference) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_uri(reference)}}


def frames(references: Sequence[Reference]) -> list[dict[str, Any]]:
    """The picture that a film begins with and, if there is a second one, the picture it ends with."""
    return [{**picture(one), "frame_type": name}
            for one, name in zip(references, ("first_frame", "last_frame"), strict=False)]


def silent(fields: dict[str, Any]) -> dict[str, Any]:
    """Unless asked for: sound costs half as much again."""
    return {"generate_audio": False, **fields}


def pictures(name: str, upstream: str, most: int, sizes: tuple[str, ...], *prices: Price) -> tuple[Model, ...]:
    """How many are made at once is up to the maker, so that each is asked for by itself."""
    rows = (passthrough("prompt", required=True), passthrough("user"), converted(
        "frame", ("aspect_ratio", "resolution"), both(closest(*RATIOS.split()), tier(*sizes))))
    given = converted("images", "input_references", each(picture), required=True, most=most)
    made = Operation(task="image", send="POST /images", read=read_pictures, params=whole("image", *rows))
    edit = replace(made, task="edit", params=whole("edit", given, *rows))
    return tuple(Model(id=name, upstream=upstream, op=op, prices=prices, priority=20) for op in (made, edit))


def film(name: str, upstream: str, lengths: Sequence[int], shapes: str, ends: int, *prices: Price, sound: bool = False,
         by: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> Model:
    """How long and of which proportions it can be, after `|` of which resolutions; and how many pictures it takes."""
    ratios, _, tiers = shapes.partition("|")
    given = converted("input_reference", "frame_images", frames, most=ends)
    loud = (passthrough("generate_audio", one_of=(True, False)),) if sound else ()
    rows = whole("video", passthrough("prompt", required=True), passthrough("user"), given, *loud,
                 lasting(*lengths, default=5 if 5 in lengths else 8), shaped(ratios, *tiers.split()))
    op = Operation(task="video", send="POST /videos", poll="GET /videos/{id}", read=read_film, params=rows, shape=by,
                   poll_seconds=10.0, priced_extras=frozenset({"previous_job_id", "upscale_factor"}))
    return Model(id=name, upstream=upstream, op=op, prices=prices, priority=20)


usd, IMAGE, SIZES = priced("OpenRouter's catalogue, 2026-08; what is reported is charged"), "image", ("1K", "2K", "4K")
MODELS = (
    Model(id="openrouter/*", upstream="*", op=TALK, prices=(CHAT,)),
    *pictures("nano-banana", "google/gemini-2.5-flash-image", 10, ("1K",), usd("0.045", IMAGE, "0.001")),
    *pictures("nano-banana-2", "google/gemini-3.1-flash-image", 14, SIZES, usd("0.12", IMAGE, "0.001", resolution="2K"),
              usd("0.17", IMAGE, "0.001", resolution="4K"), usd("0.08", IMAGE, "0.001")),
    *pictures("nano-banana-pro", "google/gemini-3-pro-image", 14, SIZES, usd("0.29", IMAGE, "0.0025", resolution="4K"),
              usd("0.18", IMAGE, "0.0025")),
    *pictures("seedream-4.5", "bytedance-seed/seedream-4.5", 10, SIZES, usd("0.04", IMAGE)),
    film("kling-3", "kwaivgi/kling-v3.0-std", range(3, 16), "16:9 9:16 1:1", 2, usd("0.126", generate_audio=True),
         usd("0.084"), sound=True, by=silent),
    film("kling-3-pro", "kwaivgi/kling-v3.0-pro", range(3, 16), "16:9 9:16 1:1", 2, usd("0.168", generate_audio=True),
         usd("0.112"), sound=True, by=silent),
    film("wan-2.7", "alibaba/wan-2.7", range(2, 11), "16:9 9:16 1:1 4:3 3:4 | 720p 1080p", 2, usd("0.1")),
    film("seedance-2", "bytedance/seedance-2.0", range(4, 16), "16:9 9:16 1:1 4:3 3:4 21:9 | 720p 480p 1080p 4K", 2,
         usd("0.07", resolution="480p"), usd("0.38", resolution="1080p"), usd("0.79", resolution="4K"), usd("0.16")),
    film("veo-3.1", "google/veo-3.1", (4, 6, 8), "16:9 9:16 | 720p 1080p 4K", 2,
         usd("0.40", generate_audio=False, resolution="4K"), usd("0.20", generate_audio=False),
         usd("0.60", resolution="4K"), usd("0.40"), sound=True),
    film("gen-4.5", "runway/gen-4.5", range(2, 11), "16:9 9:16", 1, usd("0.12")),
    film("grok-imagine-video", "x-ai/grok-imagine-video", range(1, 16), "16:9 9:16 1:1 4:3 3:4 3:2 2:3 | 720p 480p", 1,
         usd("0.05", input_usd="0.002", resolution="480p"), usd("0.07", input_usd="0.002")),
)
PROVIDER = Provider(slug="openrouter", name="OpenRouter", docs="https://openrouter.ai/docs", key="OPENROUTER_API_KEY",
                    base_url="https://openrouter.ai/api/v1", auth=bearer, error=error_text, kind=error_kind,
                    models=MODELS)
