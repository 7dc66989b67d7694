"""What is held for a call covers what its provider may bill, whatever fields it has and however they are written."""

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise, product
from typing import Any

from penstock.accounts.prices import actual_lines, highest_cost, matching_price, price_facts, quote
from penstock.errors import InvalidRequest
from penstock.fields import TABLES
from penstock.generation_jobs.parts import part_sizes
from penstock.providers.spec import Model
from penstock.upstream.extra_fields import check_extras
from penstock.values import INPUT_VIDEOS, Nanos, nanos
from tests.many_cases import check_each
from tests.providers import sweep
from tests.providers.recordings import UNLIKE_IMAGES, known_providers

# The rows of tables by which prices are computed.
PRICED_ROWS = {"n", "seconds", "frame", "quality", "generate_audio", "scale_factor"}
SHAPES = ("1:1", "16:9", "9:16", "3:1", "1920x1080", "1000x999", "3840x1200", "64x2000")


def priced_models() -> list[tuple[str, Model]]:
    """The image and video models of all providers that have a price, with the provider's slug."""
    return [
        (slug, model)
        for slug, provider in known_providers().items()
        for model in provider.models
        if model.op.task not in UNLIKE_IMAGES and model.prices
    ]


def every_model(check: Callable[[Model], None]) -> Callable[[], None]:
    """A test of all models, which fails with each that does not pass."""

    def test() -> None:
        check_each(lambda named: check(named[1]), priced_models(), lambda named: f"{named[0]}: {_name(named[1])}")

    test.__doc__ = check.__doc__
    return test


def _name(model: Model) -> str:
    return f"{model.id} {model.op.task} {model.upstream}"


def inputs(model: Model) -> dict[str, int]:
    """The fewest input files with which the model can be called."""
    return min(sweep.image_counts(model), key=lambda counts: (not _is_possible(model, counts), sum(counts.values())))


def _is_possible(model: Model, counts: Mapping[str, int]) -> bool:
    try:
        sweep.body(model, prompt(model), counts)
    except InvalidRequest:
        return False
    return True


def prompt(model: Model) -> dict[str, Any]:
    return {} if model.op.task == "upscale" else {"prompt": sweep.TEXT}


def hold(model: Model, files: Mapping[str, int], **values: Any) -> Nanos | None:
    """What is held for a call; None if it is refused."""
    fields = {**prompt(model), **values}
    try:
        sweep.body(model, fields, files)
    except InvalidRequest:
        return None
    return highest_cost(model, sweep.request(model, fields, files))


# ------------------------------------------------------------------------------------- fields that no parameter names


@every_model
def test_the_providers_own_names_of_priced_fields_are_no_extra_fields(model: Model) -> None:
    """Otherwise a caller would order what is dear under the provider's name, and pay for what is usual."""
    names = {field.partition(".")[0] for row in model.op.params if row.name in PRICED_ROWS for field in row.to}
    names |= {key.removeprefix("sent.").partition(".")[0] for key in _conditions(model) if key.startswith("sent.")}
    allowed = []
    for name in sorted(names - TABLES[model.op.task].keys() - {row.name for row in model.op.params}):
        for value in (6, True, "high", {"x": 1}):
            if _accepts(model, {name: value}):
                allowed.append((name, value))
    assert allowed == []


def _accepts(model: Model, extras: Mapping[str, Any]) -> bool:
    try:
        check_extras(model, extras)
    except InvalidRequest:
        return False
    return True


def _conditions(model: Model) -> dict[str, set[Any]]:
    """The names in the conditions of a model's prices, with the values that they have there."""
    found: dict[str, set[Any]] = {}
    for price in model.prices:
        for name, value in price.when.items():
            found.setdefault(name, set()).add(value)
    return found


@every_model
def test_an_extra_field_does_not_pass_for_what_a_price_depends_on(model: Model) -> None:
    """Nor does one that is named as a condition is, in the words of our own tables."""
    files = inputs(model)
    usual = matching_price(model.prices, price_facts(model, sweep.request(model, prompt(model), files)))
    for name, values in {**_conditions(model), "tier": {"480p"}, "pixels": {10**9}, "input_video": {True}}.items():
        for value in values if name not in TABLES[model.op.task] else ():
            request = sweep.request(model, {**prompt(model), name: value}, files)
            if _accepts(model, request.extras):
                assert matching_price(model.prices, price_facts(model, request)) == usual, (name, value)


# ------------------------------------------------------------------------------------------------- spellings and order


@every_model
def test_a_dry_run_shows_what_would_be_held(model: Model) -> None:
    request = sweep.request(model, prompt(model), inputs(model))
    assert quote(model, request).total == highest_cost(model, request)


@every_model
def test_two_spellings_of_a_size_have_one_price(model: Model) -> None:
    files = inputs(model)
    for size, ratio, resolution in (
        ("1280x720", "16:9", "720p"),
        ("1920x1080", "16:9", "1080p"),
        ("720x1280", "9:16", "720p"),
        ("1080x1080", "1:1", "1080p"),
        ("3840x2160", "16:9", "2160p"),
    ):
        spellings = {
            hold(model, files, size=size),
            hold(model, files, aspect_ratio=ratio, resolution=resolution),
            hold(model, files, size=ratio, resolution=resolution),
        }
        assert len(spellings) == 1, (size, spellings)


@every_model
def test_a_default_that_the_caller_writes_changes_no_price(model: Model) -> None:
    files = inputs(model)
    usual = hold(model, files)
    for name, row in (("seconds", model.op.param("seconds")), ("size", model.op.param("frame"))):
        if row and row.default is not None and not any(role in files for role in INPUT_VIDEOS):
            assert hold(model, files, **{name: row.default}) == usual, name
    assert hold(model, files, n=1) == usual


@every_model
def test_more_is_never_cheaper(model: Model) -> None:
    """More outputs, more seconds, a larger frame of the same shape, a higher resolution, or sound."""
    files = inputs(model)
    larger: list[list[dict[str, Any]]] = [
        [{"n": count} for count in (1, 2, 4)],
        [{"seconds": length} for length in (1, 2, 4, 5, 6, 8, 10, 15)],
        [{"resolution": name} for name in ("360p", "480p", "540p", "720p", "768p", "1080p", "1440p", "2160p")],
        *(
            [{"size": f"{wide * unit}x{tall * unit}"} for unit in (16, 48, 64, 80, 120, 200, 240)]
            for wide, tall in ((16, 9), (1, 1), (9, 16), (30, 10))
        ),
        [{"generate_audio": sound} for sound in (False, True)],
    ]
    for steps in larger:
        held = [(step, amount) for step in steps if (amount := hold(model, files, **step)) is not None]
        for (step, amount), (next_step, next_amount) in pairwise(held):
            assert amount <= next_amount, (step, next_step)


# ------------------------------------------------------------------------------------------------------------- charges


@every_model
def test_what_was_asked_for_is_never_charged_above_the_hold(model: Model) -> None:
    """Neither as it was requested, nor by the pixels of the size that is sent."""
    *_, most = sweep.image_counts(model)
    for files in (inputs(model), most):
        for shape, count in product(SHAPES, (1, 3)):
            values = {**prompt(model), "size": shape, "n": count}
            try:
                body = sweep.body(model, values, files)
            except InvalidRequest:
                continue
            request = sweep.request(model, values, files)
            for pixels in {None, *sent_pixels(body)}:
                cost = sum(
                    (
                        line.cost_usd
                        for part in part_sizes(request.n, model.op.native_n)
                        for line in actual_lines(model, request, part, pixels=pixels and pixels * part)
                    ),
                    Decimal(0),
                )
                assert nanos(cost) <= highest_cost(model, request), (shape, count, files, pixels)


def sent_pixels(body: Any) -> Iterator[int]:
    """The pixels of the sizes in a body."""
    for fields in body if isinstance(body, list) else [body]:
        for value in fields.values() if isinstance(fields, dict) else ():
            if isinstance(value, str) and (match := re.fullmatch(r"(\d{2,5})[x*](\d{2,5})", value)):
                yield int(match[1]) * int(match[2])
            yield from sent_pixels(value)
        if isinstance(fields, dict) and isinstance(fields.get("width"), int):
            yield fields["width"] * fields["height"]


def test_a_panorama_is_held_for_its_pixels_and_not_for_its_height() -> None:
    """Images of 3840x1200 and of 2560x1440 pixels both take more tokens than those of the usual sizes."""
    for slug, model in priced_models():
        if model.id.startswith("gpt-image-2") and model.op.task == "image":
            usual, large, wide = (hold(model, {}, size=size) or 0 for size in ("1536x1024", "2560x1440", "3840x1200"))
            assert 0 < usual < large == wide, (slug, model.id)


def test_an_instruction_in_an_extra_field_is_held_for_where_tokens_are_billed() -> None:
    long = "see " * 10_000
    for slug, model in priced_models():
        price = model.prices[-1]
        if slug == "google" and price.unit == "token":
            short, more = (
                hold(model, inputs(model), systemInstruction={"parts": [{"text": text}]}) for text in ("see ", long)
            )
            assert (more or 0) - (short or 0) == nanos(Decimal(price.input_usd) * (len(long) - 4)), model.id
