"""Images on Replicate: models that make, edit and upscale them."""

from penstock.providers.convert import both, closest, each_image, first_image, on_off, pixels
from penstock.providers.replicate.predictions import PROMPT, model, other_price, transcribed_price, uploaded_url
from penstock.providers.spec import Model, Param, Price, converted, emulated, fixed, frame, ignored, passthrough
from penstock.values import Frame

PNG = fixed("output_format", "png")
SEED = passthrough("seed")
FLUX_1_RATIOS = "1:1 16:9 21:9 3:2 2:3 4:5 5:4 3:4 4:3 9:16 9:21"
RATIOS = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 4:5 5:4 21:9"


def images_row(to: str, max_images: int) -> Param:
    """The row for input images: a list or, if the model takes only one, a single URL."""
    convert = each_image(uploaded_url) if max_images > 1 else first_image(uploaded_url)
    return converted("images", to=to, convert=convert, required=True, max_items=max_images)


def image_models(name: str, upstream: str, images: Param, rows: tuple[Param, ...], *prices: Price) -> tuple[Model, ...]:
    """A model that makes images without input images, and edits those that it gets."""
    return (
        model(name, upstream, "image", (PROMPT, *rows), *prices),
        model(name, upstream, "edit", (PROMPT, images, *rows), *prices),
    )


def flux_1_megapixels(size: Frame) -> str:
    """FLUX.1 makes one megapixel or a quarter of it."""
    return "0.25" if size.exact and size.width * size.height < 600_000 else "1"


ONE_IMAGE = images_row("image", 1)
FLUX_1 = (
    PROMPT,
    PNG,
    SEED,
    emulated("n", to="num_outputs", high=4),
    converted(
        "frame",
        to=("aspect_ratio", "megapixels"),
        convert=both(closest(*FLUX_1_RATIOS.split()), flux_1_megapixels),
    ),
)
FLUX_2 = (
    PNG,
    SEED,
    fixed("aspect_ratio", "custom"),
    converted("frame", to=("width", "height"), convert=pixels(multiple=16, min_side=256, max_side=2048)),
)
KONTEXT = (
    PNG,
    SEED,
    frame(f"{RATIOS} 9:21 2:1 1:2"),
    converted("prompt_enhancement", to="prompt_upsampling", convert=on_off(True, False)),
)
BANANA = (PNG, frame(RATIOS))
BANANA_PRO = (PNG, frame(RATIOS, "1K", "2K", "4K"))
SEEDREAM = (frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9", "2K", "4K", to=("aspect_ratio", "size")),)
RECRAFT = (PROMPT, frame("1:1 4:3 3:4 3:2 2:3 16:9 9:16 1:2 2:1 7:5 5:7 4:5 5:4 3:5 5:3"))
ENHANCEMENT = converted("prompt_enhancement", to="magic_prompt_option", convert=on_off("On", "Off"))
IDEOGRAM = (PROMPT, ENHANCEMENT, frame("1:1 1:3 3:1 1:2 2:1 9:16 16:9 10:16 16:10 2:3 3:2 3:4 4:3 4:5 5:4"))
IDEOGRAM_EDIT = (PROMPT, ENHANCEMENT, ONE_IMAGE, converted("mask", to="mask", convert=uploaded_url, required=True))

MODELS = (
    model("flux-schnell", "black-forest-labs/flux-schnell", "image", FLUX_1, transcribed_price("0.003", "image")),
    model("flux-dev", "black-forest-labs/flux-dev", "image", FLUX_1, transcribed_price("0.025", "image")),
    *image_models(
        "flux-2-pro",
        "black-forest-labs/flux-2-pro",
        images_row("input_images", 8),
        FLUX_2,
        other_price("0.015", "started_megapixel", input_usd="0.015", each_usd="0.015"),
    ),
    *image_models(
        "flux-2-flex",
        "black-forest-labs/flux-2-flex",
        images_row("input_images", 10),
        FLUX_2,
        other_price("0.06", "started_megapixel", input_usd="0.06"),
    ),
    *image_models(
        "flux-kontext-pro",
        "black-forest-labs/flux-kontext-pro",
        images_row("input_image", 1),
        KONTEXT,
        other_price("0.04", "image"),
    ),
    *image_models(
        "flux-kontext-max",
        "black-forest-labs/flux-kontext-max",
        images_row("input_image", 1),
        KONTEXT,
        other_price("0.08", "image"),
    ),
    *image_models(
        "nano-banana",
        "google/nano-banana",
        images_row("image_input", 10),
        BANANA,
        other_price("0.039", "image"),
    ),
    *image_models(
        "nano-banana-pro",
        "google/nano-banana-pro",
        images_row("image_input", 14),
        BANANA_PRO,
        other_price("0.30", "image", resolution="4K"),
        other_price("0.15", "image"),
    ),
    *image_models(
        "seedream-4.5",
        "bytedance/seedream-4.5",
        images_row("image_input", 14),
        SEEDREAM,
        other_price("0.04", "image"),
    ),
    model("recraft-v3", "recraft-ai/recraft-v3", "image", RECRAFT, other_price("0.04", "image")),
    model(
        "replicate/ideogram-v3-turbo",
        "ideogram-ai/ideogram-v3-turbo",
        "image",
        IDEOGRAM,
        other_price("0.03", "image"),
    ),
    model(
        "replicate/ideogram-v3-turbo",
        "ideogram-ai/ideogram-v3-turbo",
        "edit",
        IDEOGRAM_EDIT,
        other_price("0.03", "image"),
        settings={"mask": "black"},
    ),
    model(
        "recraft-crisp-upscale",
        "recraft-ai/recraft-crisp-upscale",
        "upscale",
        (ONE_IMAGE, *ignored("scale_factor")),
        other_price("0.006", "image"),
    ),
)
