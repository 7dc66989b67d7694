"""Hugging Face: images of other providers through its router, at their prices and in their shapes, with one token."""

from dataclasses import replace

from penstock.providers.convert import pixels, size_text
from penstock.providers.openai_compatible import IMAGE as OPENAI_IMAGE
from penstock.providers.spec import (
    LITELLM,
    FailureKind,
    File,
    Model,
    Operation,
    Price,
    Provider,
    Reply,
    Result,
    Source,
    bearer,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
    price_list,
)

REFUSALS = ("content_policy_violation", "nsfw", "moderat", "safety")


def read_images(reply: Reply) -> Result:
    """Read the images of a model on fal. An image that the safety checker refused is black, and flagged."""
    flags = reply.json.get("has_nsfw_concepts") or []
    images = [image for number, image in enumerate(reply.json["images"]) if not any(flags[number : number + 1])]
    if any(flags) and not images:
        return Result(status="failed", failure_kind="refused", message="The safety checker refused the output.")
    return Result(files=tuple(File(url=image["url"], content_type=image.get("content_type")) for image in images))


def error_message(reply: Reply) -> str | None:
    """The router's message is a text or an object, that of fal a text or a list."""
    found = reply.json.get("error") or reply.json["detail"]
    if isinstance(found, list):
        return str(found[0]["msg"])
    return str(found["message"] if isinstance(found, dict) else found)


def failure_kind(reply: Reply) -> FailureKind | None:
    is_refusal = reply.status in (400, 403, 422) and any(word in str(reply.json).lower() for word in REFUSALS)
    return "refused" if is_refusal else None


PROMPT = passthrough("prompt", required=True)
NSCALE = replace(
    OPENAI_IMAGE,
    send="POST /nscale/v1/images/generations",
    params=complete_table(
        "image",
        PROMPT,
        converted("frame", to="size", convert=size_text(pixels(multiple=16, min_side=256, max_side=2048))),
        fixed("response_format", "b64_json"),
    ),
)
FAL = Operation(
    task="image",
    send="POST /fal-ai/{model}",
    read=read_images,
    model_field=None,
    params=complete_table(
        "image",
        PROMPT,
        emulated("n", to="num_images", high=4),
        passthrough("seed"),
        converted("frame", to=("image_size.width", "image_size.height"), convert=pixels(max_side=2048)),
        fixed("output_format", "png"),
    ),
    priced_extras=frozenset({"num_inference_steps", "loras"}),
)
QWEN = replace(FAL, params=(*FAL.params, passthrough("negative_prompt")))


def model(name: str, upstream: str, op: Operation, price: Price) -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=(price,), priority=30)


nscale_price = price_list(LITELLM)
fal_price = price_list(Source("copies of fal's pages", "2026-11-15"))
PROVIDER = Provider(
    slug="huggingface",
    name="Hugging Face",
    docs="https://huggingface.co/docs/inference-providers",
    base_url="https://router.huggingface.co",
    key_env="HF_TOKEN",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=(
        model("flux-schnell", "black-forest-labs/FLUX.1-schnell", NSCALE, nscale_price("0.0013", "megapixel")),
        model("flux-dev", "fal-ai/flux/dev", FAL, fal_price("0.025", "started_megapixel")),
        model("qwen-image", "fal-ai/qwen-image", QWEN, fal_price("0.02", "started_megapixel")),
    ),
)
