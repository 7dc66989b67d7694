"""Meta: Muse Image, over endpoints like OpenAI's; a size chooses only the shape."""

from dataclasses import replace

from penstock.providers.convert import data_uri, lookup, pixels, size_text
from penstock.providers.openai_compatible import IMAGE as OPENAI_IMAGE
from penstock.providers.openai_compatible import error_message, failure_kind
from penstock.providers.spec import (
    LITELLM,
    Model,
    Provider,
    bearer,
    complete_table,
    converted,
    emulated,
    fixed,
    passthrough,
    price_list,
)
from penstock.values import InputFile


def image_urls(images: list[InputFile]) -> list[dict[str, object]]:
    return [{"image_url": data_uri(image)} for image in images]


ROWS = (
    passthrough("prompt", required=True),
    emulated("n", to="n", high=10),
    converted("frame", to="size", convert=size_text(pixels())),
    converted(
        "thinking",
        to="reasoning_strength",
        convert=lookup({"minimal": "low", "high": "high"}),
        one_of=("minimal", "high"),
    ),
    fixed("response_format", "b64_json"),
    fixed("output_format", "png"),
    passthrough("user"),
)
IMAGE = replace(OPENAI_IMAGE, params=complete_table("image", *ROWS))
EDIT = replace(
    OPENAI_IMAGE,
    task="edit",
    send="POST /images/edits",
    params=complete_table("edit", *ROWS, converted("images", to="images", convert=image_urls, required=True)),
)

price = price_list(LITELLM)
PROVIDER = Provider(
    slug="meta",
    name="Meta",
    docs="https://dev.meta.ai/docs",
    base_url="https://api.meta.ai/v1",
    key_env="META_API_KEY",
    auth=bearer,
    error_message=error_message,
    failure_kind=failure_kind,
    models=tuple(
        Model(
            id="muse-image-1", upstream="muse-image-1.0", name="Muse Image 1.0", op=op, prices=(price("0.01", "image"),)
        )
        for op in (IMAGE, EDIT)
    ),
)
