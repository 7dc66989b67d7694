"""Rules for every provider: complete tables, prices with a source, credentials sent only to its own hosts."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import pytest

from docs.catalogue import signs_of_life
from penstock import providers
from penstock.fields import TABLES
from penstock.generation_jobs.parts import part_sizes
from penstock.providers.row_names import INPUT_ROWS, fields_of
from penstock.providers.spec import File, HttpRequest, Model, Provider, Reply
from penstock.schema import Input, Request
from penstock.upstream import checks, translate
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed
from penstock.values import INPUT_VIDEOS, InputFile, OrgId
from tests.many_cases import check_each
from tests.providers.recordings import (
    KEY,
    UNLIKE_IMAGES,
    ScriptedHttpClient,
    known_providers,
    request_fields,
    scripted_upstream,
)

# Fields that steer the gateway; no provider hears of them.
OURS = {
    "webhook_url",
    "media_retention",
    "idempotency_key",
    "metadata",
    "session_id",
    "model",
    "stream",
    "partial_images",
    "provider",
    "labels",
    "provenance",
    "deliver_to",
    "deliver_required",
}
# None of them has a provider's price list.
OWN_PRICES = {"atelier", "lab", "comfyui", "a1111", "localai", "ollama", "vllm", "llamacpp"}
EVIL = "https://evil.example"
HOSTILE = (f"{EVIL}/?x=", "../../admin", "x\r\nauthorization: Bearer stolen", "{model}{id}", "http:\\\\evil.example")

UPLOADED = "17"  # the name of an image, as a provider may give it after an upload


def every_provider(check: Callable[[Provider], None]) -> Callable[[], None]:
    """A test of all providers, which fails with each that does not pass."""

    def test() -> None:
        check_each(check, known_providers().values(), lambda provider: provider.slug)

    test.__doc__ = check.__doc__
    return test


def media_candidates(provider: Provider) -> list[Candidate]:
    """One model of each operation; what is tested here lies in the tables that models share."""
    firsts = {id(model.op): model for model in reversed(provider.models) if model.op.task not in UNLIKE_IMAGES}
    return [Candidate(provider, model, KEY if provider.key_env else "") for model in reversed(firsts.values())]


def named(candidate: Candidate) -> str:
    return f"{candidate.provider.slug}:{candidate.model.op.task}:{candidate.model.id}"


def every_option(check: Callable[[Candidate], None]) -> Callable[[], None]:
    """A test of all operations of all providers, which fails with each that does not pass."""

    def test() -> None:
        options = [candidate for provider in known_providers().values() for candidate in media_candidates(provider)]
        check_each(check, options, named)

    test.__doc__ = check.__doc__
    return test


def needed(model: Model, **values: Any) -> Request:
    """The least that a caller must say."""
    least: dict[str, Any] = {"prompt": "a fox"}
    videos = tuple(
        Input(name, "", file.content_type, file.width, file.height, len(file.data), file.seconds, file.frames)
        for name, files in inputs(model).items()
        for file in files
        if name in INPUT_VIDEOS
    )
    request = Request(task=model.op.task, model=model.id, values={**least, **values}, inputs=videos)
    return translate.with_defaults(request, model)


def inputs(model: Model) -> dict[str, list[InputFile]]:
    """The input files that a model needs, by the names in its table."""
    image = InputFile(b"image data", "image/png", 64, 48, uploaded_name=UPLOADED)
    video = InputFile(b"video data", "video/mp4", 64, 48, seconds=5.0, frames=120)
    rows = [row for name in INPUT_ROWS if (row := model.op.param(name)) and row.required]
    return {row.name: [video if row.name in INPUT_VIDEOS else image] * max(1, row.min_items) for row in rows}


def sent(candidate: Candidate, request: Request) -> HttpRequest:
    model = candidate.model
    count = part_sizes(request.n, model.op.native_n)[0]
    fields = translate.provider_body(model, translate.table_values(request, count, inputs(model)), request.extras)
    provider = replace(candidate.provider, id_header=None)  # whose value is new each time
    return translate.http_request(provider, model, fields, candidate.key)


# --------------------------------------------------------------------------------------------------------------- tables


def test_every_file_is_discovered() -> None:
    assert {provider.slug for provider in providers.discover()} >= known_providers().keys() - {"compatible"}


@every_option
def test_tables_have_a_row_for_every_standard_field(candidate: Candidate) -> None:
    op = candidate.model.op
    aliases = {name for name, row in TABLES[op.task].items() if row.alias_of}
    fields_with_rows = {field for row in op.params for field in fields_of(row.name)}
    assert TABLES[op.task].keys() - OURS - aliases - fields_with_rows == set()


@every_option
def test_tables_have_one_row_for_each_field(candidate: Candidate) -> None:
    names = [row.name for row in candidate.model.op.params if row.handling != "fixed"]
    assert sorted(names) == sorted(set(names))


@every_option
def test_least_request_is_accepted_and_sent(candidate: Candidate) -> None:
    request = needed(candidate.model)
    checks.check(candidate.model, request)
    checks.check_inputs(candidate.model, {name: len(found) for name, found in inputs(candidate.model).items()})
    assert request_fields(sent(candidate, request))["method"] == "POST"


@every_option
def test_every_size_can_be_translated(candidate: Candidate) -> None:
    for size in ("16x16", "8192x512", "1024x1024", "1792x1024", "9:16", "20:1"):
        assert request_fields(sent(candidate, needed(candidate.model, size=size)))["method"] == "POST"


@every_option
def test_a_video_has_the_shape_of_the_image_that_it_begins_with(candidate: Candidate) -> None:
    """Unless the caller wrote another one."""
    model = candidate.model
    row = model.op.param("input_reference")
    if model.op.task != "video" or row is None or row.handling == "refused":
        return
    if row.frames == 0 or row.min_items > row.frames:
        return
    count = max(1, row.min_items)
    described = (Input("reference", "", "image/png", 720, 1280, 1),) * count
    written = Request(task="video", model=model.id, values={"prompt": "a fox"}, inputs=described)
    request = translate.with_defaults(written, model)
    loaded = {"input_reference": [InputFile(b"image data", "image/png", 720, 1280, uploaded_name=UPLOADED)] * count}
    fields = translate.provider_body(model, translate.table_values(request, 1, loaded), {})
    assert not re.search(r"16[:*x]9\b|1280[:*x]720|landscape", str(fields)), fields


@every_option
def test_video_tables_have_a_default_duration_and_size(candidate: Candidate) -> None:
    request = needed(candidate.model)
    assert candidate.model.op.task != "video" or (request.seconds and request.frame and request.frame.size)


@every_option
def test_jobs_can_be_followed(candidate: Candidate) -> None:
    op = candidate.model.op
    if op.task == "video":
        assert op.poll
    if op.cancel or op.fetch:
        assert op.poll


@every_provider
def test_models_that_make_videos_say_whether_they_have_sound(provider: Provider) -> None:
    """`generate_audio` is refused only where an input video has its own sound."""
    operations = [model.op for model in provider.models if model.op.task == "video"]
    without_video = [
        op for op in operations if not any((row := op.param(role)) and row.required for role in INPUT_VIDEOS)
    ]
    sounds = [op.param("generate_audio") for op in without_video]
    assert all(row is not None and row.handling != "refused" for row in sounds)


@every_provider
def test_models_are_named(provider: Provider) -> None:
    """What a stored plan says of a candidate finds one operation of one model."""
    ids = [(model.id, model.op.task, model.op.send, model.upstream) for model in provider.models]
    assert sorted(ids) == sorted(set(ids))
    for model in provider.models:
        assert model.upstream != "*" or (model.op.task == "chat" and "{model}" not in model.op.send)
        assert re.fullmatch(r"[\w.:*/-]+", model.id)


# --------------------------------------------------------------------------------------------------------------- prices


@every_provider
def test_prices_have_source_and_date(provider: Provider) -> None:
    """A price of the operator's own has no date, nor has one that only limits what is reported and charged."""
    for model in provider.models:
        for price in model.prices:
            assert price.source is not None, f"{model.id}: no source"
            is_dated = re.fullmatch(r"20\d\d-\d\d(-\d\d)?", price.source.as_of)
            is_undated = provider.slug in OWN_PRICES or "what is reported is charged" in price.source.name
            assert is_dated or is_undated, f"{model.id}: {price.source}"
            if price.from_date:
                assert date.fromisoformat(price.from_date).isoformat() == price.from_date


@every_provider
def test_a_plan_says_which_operation_of_a_model_serves_it(provider: Provider) -> None:
    """A plan is stored with what is compared here; of two alike operations, a worker would take the wrong one."""
    stored = [(model.id, model.upstream, model.op.task, model.op.send) for model in provider.models]
    assert [key for key in stored if stored.count(key) > 1] == []


@every_provider
def test_shutdown_dates_are_dates(provider: Provider) -> None:
    for day in {model.shutdown_date for model in provider.models} - {""}:
        assert date.fromisoformat(day).isoformat() == day


@every_provider
def test_prices_are_amounts_and_one_always_applies(provider: Provider) -> None:
    for model in provider.models:
        prices = model.prices
        assert all(Decimal(price.usd) >= 0 and Decimal(price.input_usd) >= 0 for price in prices), model.id
        has_limits = all(price.max_tokens > 0 for price in prices if price.unit == "token")
        assert model.op.task in UNLIKE_IMAGES or has_limits, model.id
        assert not prices or not (prices[-1].when or prices[-1].from_date), (
            f"{model.id}: the last row is for all that no other row is for"
        )


# ---------------------------------------------------------------------------------------------------------- addresses


@every_provider
def test_base_url_is_a_fixed_address(provider: Provider) -> None:
    parts = urlsplit(provider.base_url)
    assert parts.scheme in ("https", "atelier") or provider.base_url_env
    assert not re.search(r"[{}?#@\s]", provider.base_url)
    for model in provider.models:
        upload = model.op.video_upload
        steps = (upload.prepare, upload.start) if upload else ()
        for template in (model.op.send, model.op.poll, model.op.fetch, *model.op.cancels, *steps):
            assert template is None or re.fullmatch(r"(GET|POST|PUT|PATCH|DELETE) (/\S*|\{\w+\})", template), template


@every_option
def test_callers_change_neither_address_nor_headers(candidate: Candidate) -> None:
    plain = sent(candidate, needed(candidate.model))
    for bad in HOSTILE:
        texts = {"prompt": bad, "negative_prompt": bad, "user": bad}
        known_texts = {name: value for name, value in texts.items() if name in TABLES[candidate.model.op.task]}
        hostile = replace_extras(needed(candidate.model, **known_texts), {"x_extra": bad, bad: bad, "model_id": bad})
        steered = sent(candidate, hostile)
        assert (steered.method, steered.url, steered.headers) == (plain.method, plain.url, plain.headers)


@every_option
def test_extras_do_not_override_what_the_gateway_wrote(candidate: Candidate) -> None:
    """Among the fields as they are before they get the body's form, where extras join them."""
    candidate = replace(candidate, model=replace(candidate.model, op=replace(candidate.model.op, adjust_body=dict)))
    plain = request_fields(sent(candidate, needed(candidate.model)))
    body = plain.get("body")
    as_json = (body[0] if isinstance(body, list) else body) or dict(plain["form"])
    # A row for a field of the provider's own hands on what the caller says, once it has been checked.
    rows = {row.name for row in candidate.model.op.params} - TABLES[candidate.model.op.task].keys()
    stolen = dict.fromkeys(as_json.keys() - rows, "stolen")
    assert request_fields(sent(candidate, replace_extras(needed(candidate.model), stolen))) == plain


def replace_extras(request: Request, extras: dict[str, Any]) -> Request:
    return Request(task=request.task, model=request.model, values=request.values, extras=extras)


STRAY = (f"{EVIL}/x", "https://lab.example@evil.example/x", "//evil.example/x", "/../../x")


@every_option
def test_following_a_job_stays_at_home(candidate: Candidate) -> None:
    """Whether a provider names the next address itself or only the job."""
    asyncio.run(followed(candidate))


async def followed(candidate: Candidate) -> None:
    templates = (candidate.model.op.poll, candidate.model.op.fetch, *candidate.model.op.cancels)
    for template, bad in product(filter(None, templates), STRAY):
        script = Recorder()
        op = replace(candidate.model.op, poll=template, fetch=None)
        target = replace(candidate, model=replace(candidate.model, op=op))
        with suppress(AttemptFailed):
            await scripted_upstream(script).poll(
                target, {"id": bad} | dict.fromkeys(re.findall(r"{(\w+)}", template), bad)
            )
        assert all(urlsplit(url)[:2] == urlsplit(candidate.provider.base_url)[:2] for url in script.urls)


class Recorder(ScriptedHttpClient):
    """Remembers where it was sent, and has nothing to say."""

    def __init__(self) -> None:
        super().__init__([])
        self.urls: list[str] = []

    async def send(self, outgoing: HttpRequest, for_org: OrgId | None = None, **_: Any) -> Reply:
        self.urls.append(outgoing.url)
        return Reply(404)


@every_provider
def test_a_key_that_the_operator_names_is_sent(provider: Provider) -> None:
    assert provider.local or provider.slug == "vertex" or provider.sign or provider.auth("an-id:s3cr3t") != {}


@every_option
def test_credential_goes_only_to_files_at_home(candidate: Candidate) -> None:
    upstream = scripted_upstream(ScriptedHttpClient([]))
    with pytest.raises(AttemptFailed):
        upstream.download_source(candidate, File(url=f"{EVIL}/x", private=True))
    assert upstream.download_source(candidate, File(url=f"{EVIL}/x")).headers == {}


@every_option
def test_credential_is_in_headers_only(candidate: Candidate) -> None:
    if not candidate.key:
        return
    outgoing = sent(replace(candidate, own_key="an-id:s3cr3t-canary"), needed(candidate.model))
    assert "s3cr3t" not in outgoing.url
    assert b"s3cr3t" not in outgoing.whole_body
    assert outgoing.headers != sent(replace(candidate, own_key="an-id:another"), needed(candidate.model)).headers


def test_every_vendor_was_seen_alive() -> None:
    """A vendor that ends its API is not noticed by any other test, as it is never called from here."""
    signs = signs_of_life()
    vendors = {
        provider.slug for provider in providers.discover() if not (provider.self_hosted or provider.local is not None)
    }
    hint = "add a line to tests/providers/signs_of_life.txt: where was it last seen, and when?"
    assert vendors - signs.keys() == set(), hint
    assert signs.keys() - vendors == set()
    days = [date.fromisoformat(day) for day, _ in signs.values()]
    assert min(days) >= date(2026, 6, 1), "look for a newer witness"
    assert all(witness for _, witness in signs.values())
