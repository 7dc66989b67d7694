"""Pictures on Replicate: makers, editors and an upscaler."""

from penstock.providers.convert import both, closest, each_image, first_image, on_off, pixels
from penstock.providers.replicate.predictions import PROMPT, left, model, page, usd
from penstock.providers.spec import Model, Param, Price, converted, emulated, fixed, refused, frame
from penstock.values import Frame

PNG = fixed("output_format", "png")
OLD_RATIOS = "1:1 16:9 21:9 3:2 2:3 4:5 5:4 3:4 4:3 9:16 9:21"
RATIOS = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 4:5 5:4 21:9"
IMAGE, MP = "image", "started_megapixel"


def stills(name: str, upstream: str, to: str, most: int, rows: tuple[Param, ...], *prices: Price) -> tuple[Model, ...]:
    """One model makes pictures of words, and edits those that it is given."""
    pictures = converted(
        "images", to, each_image(left) if most > 1 else first_image(left), required=True, max_items=most
    )
    return (
        model(name, upstream, "image", (PROMPT, *rows), *prices),
        model(name, upstream, "edit", (PROMPT, pictures, *rows), *prices),
    )


def quarter(frame: Frame) -> str:
    """Older Flux models make one megapixel, or a quarter of it."""
    return "0.25" if frame.exact and frame.width * frame.height < 600_000 else "1"


ONE_PICTURE = converted("images", "image", first_image(left), required=True, max_items=1)
FLUX = (
    PROMPT,
    PNG,
    emulated("n", "num_outputs", high=4),
    converted("frame", ("aspect_ratio", "megapixels"), both(closest(*OLD_RATIOS.split()), quarter)),
)
FLUX_2 = (PNG, fixed("aspect_ratio", "custom"), converted("frame", ("width", "height"), pixels(1024, 16, 256, 2048)))
KONTEXT = (
    PNG,
    frame(f"{RATIOS} 9:21 2:1 1:2"),
    converted("prompt_enhancement", "prompt_upsampling", on_off(True, False)),
)
BANANA = (PNG, frame(RATIOS))
BANANA_PRO = (PNG, frame(RATIOS, "1K", "2K", "4K"))
SEEDREAM = (frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9", "2K", "4K", to=("aspect_ratio", "size")),)
RECRAFT = (PROMPT, frame("1:1 4:3 3:4 3:2 2:3 16:9 9:16 1:2 2:1 7:5 5:7 4:5 5:4 3:5 5:3"))
MAGIC = converted("prompt_enhancement", "magic_prompt_option", on_off("On", "Off"))
IDEOGRAM = (PROMPT, MAGIC, frame("1:1 1:3 3:1 1:2 2:1 9:16 16:9 10:16 16:10 2:3 3:2 3:4 4:3 4:5 5:4"))
IDEOGRAM_EDIT = (PROMPT, MAGIC, ONE_PICTURE, converted("mask", "mask", left, required=True))

MODELS = (
    model("flux-schnell", "black-forest-labs/flux-schnell", "image", FLUX, page("0.003", IMAGE)),
    model("flux-dev", "black-forest-labs/flux-dev", "image", FLUX, page("0.025", IMAGE)),
    *stills(
        "flux-2-pro", "black-forest-labs/flux-2-pro", "input_images", 8, FLUX_2, usd("0.015", MP, "0.015", "0.015")
    ),
    *stills("flux-2-flex", "black-forest-labs/flux-2-flex", "input_images", 10, FLUX_2, usd("0.06", MP, "0.06")),
    *stills("flux-kontext-pro", "black-forest-labs/flux-kontext-pro", "input_image", 1, KONTEXT, usd("0.04", IMAGE)),
    *stills("flux-kontext-max", "black-forest-labs/flux-kontext-max", "input_image", 1, KONTEXT, usd("0.08", IMAGE)),
    *stills("nano-banana", "google/nano-banana", "image_input", 10, BANANA, usd("0.039", IMAGE)),
    *stills(
        "nano-banana-pro",
        "google/nano-banana-pro",
        "image_input",
        14,
        BANANA_PRO,
        usd("0.30", IMAGE, resolution="4K"),
        usd("0.15", IMAGE),
    ),
    *stills("seedream-4.5", "bytedance/seedream-4.5", "image_input", 14, SEEDREAM, usd("0.04", IMAGE)),
    model("recraft-v3", "recraft-ai/recraft-v3", "image", RECRAFT, usd("0.04", IMAGE)),
    model("replicate/ideogram-v3-turbo", "ideogram-ai/ideogram-v3-turbo", "image", IDEOGRAM, usd("0.03", IMAGE)),
    model(
        "replicate/ideogram-v3-turbo",
        "ideogram-ai/ideogram-v3-turbo",
        "edit",
        IDEOGRAM_EDIT,
        usd("0.03", IMAGE),
        settings={"mask": "black"},
    ),
    model(
        "recraft-crisp-upscale",
        "recraft-ai/recraft-crisp-upscale",
        "upscale",
        (ONE_PICTURE, *refused("scale_factor")),
        usd("0.006", IMAGE),
    ),
)
