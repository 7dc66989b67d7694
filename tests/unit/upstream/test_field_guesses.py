"""What the names of extra fields are taken for."""

from dataclasses import replace

import pytest

from penstock.providers.openai_compatible import OPERATIONS
from penstock.providers.spec import Model, Price
from penstock.upstream.field_guesses import (
    asks_for_dry_run,
    changes_price,
    is_named_like_a_file,
    looks_like_a_file,
    redirects,
)

IMAGE = Model(id="lab/brush", upstream="brush", op=OPERATIONS["image"], prices=(Price(unit="image", usd="1"),))
CHAT = replace(IMAGE, op=OPERATIONS["chat"])


@pytest.mark.parametrize(
    ("name", "at_top", "inside"),
    [
        ("webhookUrl", True, True),
        ("Extra-Headers", True, True),
        ("url", True, False),
        ("stream", True, False),
        ("webhook_config", True, True),
        ("uploadEndpoint", True, True),
        ("storageUri", True, True),
        ("deliveryMethod", True, True),
        ("sync_mode", True, True),
        ("enable_base64_output", True, True),
        ("async", True, True),
        ("guidance_scale", False, False),
        ("uploaded_style_strength", False, False),
        ("asynchrony", False, False),
    ],
)
def test_fields_that_redirect_the_call(name: str, at_top: bool, inside: bool) -> None:
    assert (redirects(name, is_top=True), redirects(name, is_top=False)) == (at_top, inside)


@pytest.mark.parametrize(
    ("name", "of_image", "of_chat"),
    [
        ("num_images", True, False),
        ("imageCount", True, False),
        ("clip_duration", True, False),
        ("service_tier", True, True),
        ("web_search_options", False, True),
        ("prediction", False, True),
        ("guidance_scale", False, False),
        ("logit_bias", False, False),
    ],
)
def test_fields_that_change_the_price(name: str, of_image: bool, of_chat: bool) -> None:
    assert (changes_price(IMAGE, name), changes_price(CHAT, name)) == (of_image, of_chat)


def test_a_provider_may_name_more() -> None:
    with_steps = replace(IMAGE, op=replace(IMAGE.op, priced_extras=frozenset({"steps"})))
    assert (changes_price(with_steps, "steps"), changes_price(IMAGE, "steps")) == (True, False)


@pytest.mark.parametrize(("unit", "width", "seconds"), [("image", False, False), ("second", False, True)])
def test_on_a_server_of_the_operators_own_only_what_its_unit_counts(unit: str, width: bool, seconds: bool) -> None:
    own = replace(IMAGE, on_own_server=True, prices=(Price(unit=unit, usd="1"),))  # type: ignore[arg-type]
    assert (changes_price(own, "width"), changes_price(own, "seconds")) == (width, seconds)
    assert changes_price(own, "num_images")
    by_size = replace(own, prices=(replace(own.prices[0], when={"size": "large"}), *own.prices))
    assert changes_price(by_size, "width")


def test_fields_with_files() -> None:
    for name in ("image_url", "firstFrame", "reference_images", "mask", "video2"):
        assert is_named_like_a_file(name), name
    for name in ("imagination", "style", "masking_strength"):
        assert not is_named_like_a_file(name), name
    for text in ("https://files.example/x.png", "data:image/png;base64,xyz", "gs://bucket/x", "A" * 200):
        assert looks_like_a_file(text), text
    for text in ("a pear", "A" * 199, "ratio 1:1"):
        assert not looks_like_a_file(text), text


def test_a_dry_run_is_recognised_however_it_is_written() -> None:
    assert all(map(asks_for_dry_run, ("dryRun", "dry_run", "DRY-RUN")))
    assert not asks_for_dry_run("run")
