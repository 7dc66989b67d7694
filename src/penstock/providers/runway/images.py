"""Runway's Gen-4 images, made of a text or of a text and images."""

from dataclasses import replace

from penstock.providers.convert import closest_label, data_uri, each_image
from penstock.providers.runway.tasks import MAX_INPUT_BYTES, PROMPT, SEED, TASK, price, size_labels
from penstock.providers.spec import Model, Operation, complete_table, converted
from penstock.values import InputFile


def image_object(image: InputFile) -> dict[str, object]:
    return {"uri": data_uri(image)}


IMAGE_TASK = replace(TASK, task="image", send="POST /text_to_image", poll_seconds=2.0)
SIZES = size_labels(
    """1024x1024 1280x720 720x1280 720x720 960x720 720x960 1680x720 1080x1080 1440x1080 1080x1440 1920x1080 1080x1920
    1168x880 1360x768 1808x768 2112x912"""
)
SIZE = converted("frame", to="ratio", convert=closest_label(SIZES))
REFERENCES = converted(
    "images",
    to="referenceImages",
    convert=each_image(image_object),
    required=True,
    max_items=3,
    max_bytes=MAX_INPUT_BYTES,
)
IMAGE = replace(IMAGE_TASK, params=complete_table("image", PROMPT, SEED, SIZE))
EDIT = replace(IMAGE_TASK, task="edit", params=complete_table("edit", PROMPT, SEED, SIZE, REFERENCES))


def image_model(name: str, upstream: str, op: Operation, usd: str) -> Model:
    return Model(id=name, upstream=upstream, op=op, prices=(price(usd, "image"),))


MODELS = (
    # 5 credits at 720p and 8 at 1080p; the task reports which.
    image_model("runway/gen4-image", "gen4_image", IMAGE, "0.08"),
    image_model("runway/gen4-image", "gen4_image", EDIT, "0.08"),
    image_model("runway/gen4-image-turbo", "gen4_image_turbo", EDIT, "0.02"),
)
