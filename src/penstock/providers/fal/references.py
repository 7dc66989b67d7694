"""Videos on fal that show what is in reference images: endpoints of their own, under the ids of the same models."""

from penstock.providers.convert import data_uri, each_image
from penstock.providers.fal.queue import PROMPT, litellm_price, model, stored_price
from penstock.providers.fal.videos import NEGATIVE_PROMPT, SEED, SOUND, WAN_FRAMES, duration_text
from penstock.providers.spec import ALWAYS_SOUND, Param, converted, duration, frame, renamed


def references(field: str, max_images: int) -> Param:
    """The row for reference images. Only images with that role are sent here: others are frames."""
    return converted(
        "input_reference",
        to=field,
        convert=each_image(data_uri),
        required=True,
        max_items=max_images,
        frames=0,
        needs_role=True,
    )


WAN = (
    PROMPT,
    NEGATIVE_PROMPT,
    SEED,
    WAN_FRAMES[0],
    references("reference_image_urls", 5),
    duration(*range(2, 11), default=5),
    ALWAYS_SOUND,
)
SEEDANCE = (
    PROMPT,
    SEED,
    frame("16:9 9:16 1:1 4:3 3:4 21:9", "720p", "480p", "1080p"),
    references("image_urls", 9),
    duration_text(*range(4, 16), default=5),
    renamed("user", to="end_user_id"),
    SOUND,
)
MODELS = (
    model("wan-2.7", "fal-ai/wan/v2.7/reference-to-video", "video", WAN, (stored_price("0.10"),)),
    model(
        "seedance-2",
        "bytedance/seedance-2.0/reference-to-video",
        "video",
        SEEDANCE,
        (
            litellm_price("0.1346", resolution="480p"),
            litellm_price("0.682", resolution="1080p"),
            stored_price("0.3024"),
        ),
    ),
)
