"""Pictures on fal: makers, editors and upscalers."""

from penstock.providers.convert import data_uri, each_image, first_image, on_off, pixels, lookup
from penstock.providers.fal.queue import PROMPT, hearsay, listed, model, usd
from penstock.providers.spec import Model, Param, Price, converted, emulated, fixed, passthrough, renamed, frame

PNG, N = fixed("output_format", "png"), emulated("n", "num_images", high=4)
ONE_PICTURE = converted("images", "image_url", first_image(data_uri), required=True, max_items=1)
RATIOS = "1:1 16:9 9:16 4:3 3:4 3:2 2:3 5:4 4:5 21:9"
MP, PICTURE = "started_megapixel", "image"


def size(**limits: int) -> Param:
    return converted("frame", ("image_size.width", "image_size.height"), pixels(**limits))


def stills(name: str, path: str, most: int, rows: tuple[Param, ...], *prices: Price) -> tuple[Model, ...]:
    """One endpoint makes pictures; another, where there is one, edits so many of them."""
    made = model(name, path, "image", (PROMPT, *rows), prices, poll_seconds=1.0)
    if not most:
        return (made,)
    pictures = converted("images", "image_urls", each_image(data_uri), required=True, max_items=most)
    edit = path.removesuffix("/text-to-image") + "/edit"
    return made, model(name, edit, "edit", (PROMPT, pictures, *rows), prices, poll_seconds=1.0)


def upscaler(name: str, path: str, price: Price, *rows: Param, largest: int) -> Model:
    factor = renamed("scale_factor", "upscale_factor", low=1, high=largest, default=2)
    return model(name, path, "upscale", (ONE_PICTURE, *rows, factor), (price,))


FLUX = (size(max_side=4096), N, PNG)
FLUX_2 = (size(max_side=2048), PNG)
KONTEXT = (
    PROMPT,
    ONE_PICTURE,
    N,
    PNG,
    frame("1:1 16:9 9:16 4:3 3:4 3:2 2:3 21:9 9:21"),
    converted("prompt_enhancement", "enhance_prompt", on_off(True, False)),
)
SEEDREAM_4 = (size(min_area=960 * 960, max_side=4096), N)
SEEDREAM = (size(min_area=2560 * 1440, max_side=4096), N)
BANANA = (frame(RATIOS), N, PNG)
BANANA_PRO = (frame(RATIOS, "1K", "2K", "4K"), N, PNG)
BANANA_2 = (
    *BANANA_PRO,
    converted("thinking", "thinking_level", lookup({"minimal": "minimal"}), one_of=("off", "minimal")),
)
IDEOGRAM = (
    size(max_side=1536),
    N,
    converted("prompt_enhancement", "expand_prompt", on_off(True, False)),
    converted("quality", "rendering_speed", lookup({"low": "TURBO", "hd": "QUALITY", "high": "QUALITY"})),
)
RECRAFT = (size(max_side=2048),)
QWEN = (size(max_side=2048), N, PNG)

MODELS = (
    *stills("flux-schnell", "fal-ai/flux/schnell", 0, FLUX, usd("0.003", MP)),
    *stills("flux-dev", "fal-ai/flux/dev", 0, FLUX, listed("0.025", MP)),
    *stills("flux-2-pro", "fal-ai/flux-2-pro", 8, FLUX_2, usd("0.015", MP, "0.015", "0.015")),
    *stills("flux-2-max", "fal-ai/flux-2-max", 8, FLUX_2, usd("0.03", MP, "0.03", "0.04")),
    *stills("flux-2-flex", "fal-ai/flux-2-flex", 10, FLUX_2, usd("0.05", MP, "0.05")),
    model("flux-kontext-pro", "fal-ai/flux-pro/kontext", "edit", KONTEXT, (usd("0.04", PICTURE),)),
    model("flux-kontext-max", "fal-ai/flux-pro/kontext/max", "edit", KONTEXT, (hearsay("0.08", PICTURE),)),
    *stills("seedream-4", "fal-ai/bytedance/seedream/v4/text-to-image", 10, SEEDREAM_4, hearsay("0.03", PICTURE)),
    *stills("seedream-4.5", "fal-ai/bytedance/seedream/v4.5/text-to-image", 10, SEEDREAM, hearsay("0.04", PICTURE)),
    *stills("seedream-5", "bytedance/seedream/v5/lite/text-to-image", 10, SEEDREAM, usd("0.035", PICTURE)),
    *stills("nano-banana", "fal-ai/nano-banana", 10, BANANA, listed("0.039", PICTURE)),
    *stills(
        "nano-banana-2",
        "fal-ai/nano-banana-2",
        14,
        BANANA_2,
        listed("0.12", PICTURE, resolution="2K"),
        listed("0.16", PICTURE, resolution="4K"),
        listed("0.08", PICTURE),
    ),
    *stills(
        "nano-banana-pro",
        "fal-ai/nano-banana-pro",
        14,
        BANANA_PRO,
        listed("0.30", PICTURE, resolution="4K"),
        listed("0.15", PICTURE),
    ),
    *stills(
        "ideogram-v3",
        "fal-ai/ideogram/v3",
        0,
        IDEOGRAM,
        usd("0.03", PICTURE, rendering_speed="TURBO"),
        usd("0.09", PICTURE, rendering_speed="QUALITY"),
        usd("0.06", PICTURE),
    ),
    *stills("recraft-v3", "fal-ai/recraft/v3/text-to-image", 0, RECRAFT, listed("0.04", PICTURE)),
    *stills("recraft-v4", "fal-ai/recraft/v4.1/text-to-image", 0, RECRAFT, usd("0.035", PICTURE)),
    *stills("qwen-image", "fal-ai/qwen-image", 0, QWEN, usd("0.02", MP)),
    upscaler("clarity-upscaler", "fal-ai/clarity-upscaler", usd("0.03", MP), passthrough("prompt"), largest=4),
    upscaler("seedvr-upscale", "fal-ai/seedvr/upscale/image", usd("0.001", MP), PNG, largest=10),
)
