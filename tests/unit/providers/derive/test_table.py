"""A table is made of a schema: standard fields are recognised, others are passed on and checked."""

from typing import Any

import pytest

from penstock.providers.derive.table import tables
from penstock.providers.live import LiveModel, Underivable
from penstock.providers.spec import Param, Task
from penstock.values import InputFile

TEXT = {"type": "string"}
SWITCH = {"type": "boolean"}


def made(makes: str, required: list[str], name: str = "a/b", **properties: Any) -> dict[Task, dict[str, Param]]:
    live = LiveModel(input={"type": "object", "properties": properties, "required": required})

    def encode(image: InputFile) -> str:
        return image.uploaded_name

    return {task: {row.name: row for row in rows} for task, rows in tables(name, live, makes, encode).items()}


def test_tasks_follow_from_the_images() -> None:
    assert list(made("image", ["prompt"], prompt=TEXT)) == ["image"]
    assert list(made("image", ["prompt"], prompt=TEXT, image=TEXT)) == ["image", "edit"]
    assert list(made("image", ["prompt", "image"], prompt=TEXT, image=TEXT)) == ["edit"]
    assert list(made("image", ["image"], name="x/super-resolution", image=TEXT)) == ["upscale"]
    assert list(made("image", ["image"], name="x/remove-background", image=TEXT)) == ["edit"]
    assert made("video", ["prompt"], prompt=TEXT)["video"]["input_reference"].handling == "refused"


def test_standard_fields_are_recognised() -> None:
    image = made(
        "image",
        ["prompt"],
        text_prompt=TEXT,
        num_outputs={"type": "integer", "maximum": 4},
        seed={"type": "integer", "maximum": 9},
        quality={"type": "string", "enum": ["low", "high"]},
        enable_prompt_expansion=SWITCH,
        output_format={"type": "string", "enum": ["webp", "png"], "default": "webp"},
        max_images={"type": "integer"},
        sync_mode=SWITCH,
        mood={"type": "string", "enum": ["calm"]},
    )["image"]
    assert (image["prompt"].to, image["n"].to, image["n"].high) == (("text_prompt",), ("num_outputs",), 4)
    assert image["prompt_enhancement"].to == ("enable_prompt_expansion",)
    assert [image["quality"].convert(each) for each in ("hd", "high", "standard")] == ["high", "high", None]  # type: ignore[misc]
    assert (image[""].to, image[""].value) == (("output_format",), "png")
    assert image["mood"].schema == {"type": "string", "enum": ["calm"]}
    assert {"max_images", "sync_mode"}.isdisjoint(image)
    video = made("video", [], prompt=TEXT, enable_audio=SWITCH, n_prompt=TEXT)["video"]
    assert (video["generate_audio"].to, video["negative_prompt"].to) == (("enable_audio",), ("n_prompt",))


@pytest.mark.parametrize(
    "name",
    """num_results num_variations num_images_per_prompt numImages samples n_samples image_number output_count n_iter
    image_batch_size""".split(),
)
@pytest.mark.parametrize("makes", ["image", "video"])
def test_a_second_number_of_outputs_is_no_parameter(makes: Any, name: str) -> None:
    """The outputs would be made and billed, and nothing was held for them; `num_images` is `n`."""
    counts: dict[str, Any] = {"num_images": {"type": "integer", "maximum": 4}}
    counts[name] = {"type": "integer", "maximum": 100}
    found = made(makes, ["prompt"], prompt=TEXT, num_inference_steps={"type": "integer"}, **counts)[makes]
    assert (name in found, "num_inference_steps" in found) == (False, True)


def test_a_model_that_needs_what_nobody_can_say_is_not_offered() -> None:
    with pytest.raises(Underivable, match="it needs `style`"):
        made("image", ["style"], prompt=TEXT, style=TEXT)
    assert "style" in made("image", [], prompt=TEXT, style=TEXT)["image"]
