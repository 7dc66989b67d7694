"""Images on fal: models that make, edit and upscale them."""

from penstock.providers.convert import data_uri, each_image, first_image, lookup, on_off, pixels
from penstock.providers.fal.queue import PROMPT, litellm_price, model, other_price, stored_price
from penstock.providers.spec import Model, Param, Price, converted, emulated, fixed, frame, passthrough, renamed

PNG = fixed("output_format", "png")
SEED = passthrough("seed")
NEGATIVE_PROMPT = passthrough("negative_prompt")
N = emulated("n", to="num_images", high=4)
ONE_IMAGE = converted("images", to="image_url", convert=first_image(data_uri), required=True, max_items=1)
RATIOS = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 21:9"
MP = "started_megapixel"


def size(max_side: int, min_area: int = 1) -> Param:
    return converted(
        "frame",
        to=("image_size.width", "image_size.height"),
        convert=pixels(max_side=max_side, min_area=min_area),
    )


def image_model(name: str, path: str, rows: tuple[Param, ...], *prices: Price) -> Model:
    return model(name, path, "image", (PROMPT, *rows), prices, poll_seconds=1.0)


def image_models(name: str, path: str, max_images: int, rows: tuple[Param, ...], *prices: Price) -> tuple[Model, ...]:
    """A model with an endpoint that makes images and one that edits up to `max_images` of them."""
    images = converted("images", to="image_urls", convert=each_image(data_uri), required=True, max_items=max_images)
    edit_path = path.removesuffix("/text-to-image") + "/edit"
    return (
        image_model(name, path, rows, *prices),
        model(name, edit_path, "edit", (PROMPT, images, *rows), prices, poll_seconds=1.0),
    )


def kontext_model(name: str, path: str, price: Price) -> Model:
    rows = (
        PROMPT,
        ONE_IMAGE,
        N,
        PNG,
        SEED,
        frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9 9:21"),
        converted("prompt_enhancement", to="enhance_prompt", convert=on_off(True, False)),
    )
    return model(name, path, "edit", rows, (price,))


def upscale_model(name: str, path: str, price: Price, *rows: Param, max_factor: int) -> Model:
    factor = renamed("scale_factor", to="upscale_factor", low=1, high=max_factor, default=2)
    return model(name, path, "upscale", (ONE_IMAGE, SEED, *rows, factor), (price,))


FLUX = (size(max_side=4096), N, PNG, SEED)
FLUX_2 = (size(max_side=2048), PNG, SEED)
SEEDREAM_4 = (size(max_side=4096, min_area=960 * 960), N, SEED)
SEEDREAM_5 = (size(max_side=4096, min_area=2560 * 1440), N)
SEEDREAM_45 = (*SEEDREAM_5, SEED)
BANANA = (frame(RATIOS), N, PNG, SEED)
BANANA_PRO = (frame(RATIOS, "1K", "2K", "4K"), N, PNG, SEED)
BANANA_2 = (
    *BANANA_PRO,
    converted(
        "thinking",
        to="thinking_level",
        convert=lookup({"minimal": "minimal"}),
        one_of=("off", "minimal"),
    ),
)
IDEOGRAM = (
    size(max_side=1536),
    N,
    SEED,
    NEGATIVE_PROMPT,
    converted("prompt_enhancement", to="expand_prompt", convert=on_off(True, False)),
    converted("quality", to="rendering_speed", convert=lookup({"low": "TURBO", "hd": "QUALITY", "high": "QUALITY"})),
)
RECRAFT = (size(max_side=2048),)
QWEN = (size(max_side=2048), N, PNG, SEED, NEGATIVE_PROMPT)

SEEDREAM_PATH = "fal-ai/bytedance/seedream"
MODELS = (
    image_model("flux-schnell", "fal-ai/flux/schnell", FLUX, stored_price("0.003", MP)),
    image_model("flux-dev", "fal-ai/flux/dev", FLUX, litellm_price("0.025", MP)),
    *image_models(
        "flux-2-pro",
        "fal-ai/flux-2-pro",
        8,
        FLUX_2,
        stored_price("0.015", MP, input_usd="0.015", each_usd="0.015"),
    ),
    *image_models(
        "flux-2-max",
        "fal-ai/flux-2-max",
        8,
        FLUX_2,
        stored_price("0.03", MP, input_usd="0.03", each_usd="0.04"),
    ),
    *image_models("flux-2-flex", "fal-ai/flux-2-flex", 10, FLUX_2, stored_price("0.05", MP, input_usd="0.05")),
    kontext_model("flux-kontext-pro", "fal-ai/flux-pro/kontext", stored_price("0.04", "image")),
    kontext_model("flux-kontext-max", "fal-ai/flux-pro/kontext/max", other_price("0.08", "image")),
    *image_models("seedream-4", f"{SEEDREAM_PATH}/v4/text-to-image", 10, SEEDREAM_4, other_price("0.03", "image")),
    *image_models("seedream-4.5", f"{SEEDREAM_PATH}/v4.5/text-to-image", 10, SEEDREAM_45, other_price("0.04", "image")),
    *image_models(
        "seedream-5",
        "bytedance/seedream/v5/lite/text-to-image",
        10,
        SEEDREAM_5,
        stored_price("0.035", "image"),
    ),
    *image_models("nano-banana", "fal-ai/nano-banana", 10, BANANA, litellm_price("0.039", "image")),
    *image_models(
        "nano-banana-2",
        "fal-ai/nano-banana-2",
        14,
        BANANA_2,
        litellm_price("0.12", "image", resolution="2K"),
        litellm_price("0.16", "image", resolution="4K"),
        litellm_price("0.08", "image"),
    ),
    *image_models(
        "nano-banana-pro",
        "fal-ai/nano-banana-pro",
        14,
        BANANA_PRO,
        litellm_price("0.30", "image", resolution="4K"),
        litellm_price("0.15", "image"),
    ),
    image_model(
        "ideogram-v3",
        "fal-ai/ideogram/v3",
        IDEOGRAM,
        stored_price("0.03", "image", rendering_speed="TURBO"),
        stored_price("0.09", "image", rendering_speed="QUALITY"),
        stored_price("0.06", "image"),
    ),
    image_model("recraft-v3", "fal-ai/recraft/v3/text-to-image", RECRAFT, litellm_price("0.04", "image")),
    image_model("recraft-v4", "fal-ai/recraft/v4.1/text-to-image", RECRAFT, stored_price("0.035", "image")),
    image_model("qwen-image", "fal-ai/qwen-image", QWEN, stored_price("0.02", MP)),
    upscale_model(
        "clarity-upscaler",
        "fal-ai/clarity-upscaler",
        stored_price("0.03", MP),
        passthrough("prompt"),
        NEGATIVE_PROMPT,
        max_factor=4,
    ),
    upscale_model("seedvr-upscale", "fal-ai/seedvr/upscale/image", stored_price("0.001", MP), PNG, max_factor=10),
)
