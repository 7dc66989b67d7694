"""Preferences among providers on image and video calls: what is tried, shown, charged and replayed."""

import base64
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from penstock.errors import AllProvidersExhausted, InvalidRequest
from penstock.fields import UploadedFile
from penstock.generations import endpoints
from tests.fake_providers import faults
from tests.fake_providers.scripted import png, scripted_provider
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

pytestmark = sqlite_only
# The annex has the second priority, and is cheaper.
CHEAP_ANNEX = {
    "annex/image-1": {"price": {"unit": "image", "usd": "0.01"}},
    "annex/video-1": {"price": {"unit": "second", "usd": "0.02"}},
}


async def dry_run(running: RunningGateway, **body: Any) -> Any:
    body = {"model": "image-1", "prompt": "a pear", "size": "64x64", **body}
    return (await endpoints.make_images(running.gateway, running.call(body, query={"dryRun": "true"}))).json


async def test_each_preference_chooses_the_provider(open_gateway: OpenGateway) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "lab"),
        ({"order": ["annex"]}, "annex"),
        ({"only": ["annex"]}, "annex"),
        ({"ignore": ["lab", "fal"]}, "annex"),
        ({"sort": "price"}, "annex"),
        ({"max_price": 0.02}, "annex"),
        ({"max_price": {"image": 0.02}}, "annex"),
        ({"order": ["lab"], "sort": "price"}, "lab"),
    ]
    async with open_gateway(annex=True, models=CHEAP_ANNEX) as running:
        used = [(await running.image(provider=provider))["metadata"]["provider"] for provider, _ in cases]
        assert used == [slug for _, slug in cases]
        response = await running.video(provider={"sort": "price"})
        assert (await running.wait_for_video(response.json["id"]))["metadata"]["provider"] == "annex"
        sent = [*running.lab.images.received, *running.annex.images.received, *running.annex.videos.received]
        assert all("provider" not in request.fields for request in sent), "it is for the gateway"


async def test_the_fastest_is_known_from_the_records(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        for slug, seconds in (("lab", 9), ("annex", 2)):
            made = await running.image(provider={"only": [slug]})
            await running.change(
                f"UPDATE attempts SET updated_at_ms = created_at_ms + {seconds * 1000} "  # noqa: S608
                f"WHERE request_id = '{made['id']}'"
            )
        running.clock.advance(20)
        for sort in ("latency", "throughput"):
            assert (await running.image(provider={"sort": sort}))["metadata"]["provider"] == "annex"
            shown = await dry_run(running, provider={"sort": sort})
            assert [(each["provider"], each["reason"][:4]) for each in shown["candidates"]] == [
                ("annex", "2 s,"),
                ("lab", "9 s,"),
            ]


async def test_a_dry_run_shows_who_would_be_tried_at_what_price_and_why(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, models=CHEAP_ANNEX) as running:
        plain = await dry_run(running, n=2)
        assert (plain["provider"], plain["total_cost_micros"]) == ("lab", 80_000)
        assert plain["candidates"] == [
            {
                "provider": "lab",
                "model": "lab/easel-1",
                "total_cost_micros": 80_000,
                "reason": "priority 0, weight 1",
            },
            {
                "provider": "annex",
                "model": "annex/easel-1",
                "total_cost_micros": 20_000,
                "reason": "priority 1, weight 1",
            },
        ]
        assert plain["left_out"] == []
        cheap = await dry_run(running, n=2, provider={"sort": "price", "max_price": {"image": 0.03}})
        assert (cheap["provider"], cheap["total_cost_micros"]) == ("annex", 20_000)
        assert [each["reason"] for each in cheap["candidates"]] == ["sorted by price"]
        assert cheap["left_out"] == [
            {"provider": "lab", "model": "lab/easel-1", "reason": "would cost 0.04 dollars (image)"}
        ]


@pytest.mark.parametrize("preferences", [{}, {"provider": {"order": ["lab"]}}])
async def test_a_model_that_upscales_is_no_candidate_for_an_edit(
    open_gateway: OpenGateway, preferences: dict[str, Any]
) -> None:
    """Two providers may do different things under one id; the first decides what is asked for."""
    async with scripted_provider() as lab, scripted_provider("annex") as annex:
        upscaler = {"id": "edit-1", "upstream": "up-1", "task": "upscale", "price": {"unit": "image", "usd": "9"}}
        providers = {"lab": lab.settings(), "annex": annex.settings(priority=1, models=[upscaler])}
        async with open_gateway(labs=(lab, annex), providers=providers) as running:
            image = "data:image/png;base64," + base64.b64encode(png(32, 32)).decode()
            body = {"model": "edit-1", "prompt": "a hat", "image": image, **preferences}
            call = running.call(body, query={"dryRun": "true"})
            shown = (await endpoints.edit_images(running.gateway, call)).json
            assert [each["provider"] for each in shown["candidates"]] == ["lab"]
            assert shown["left_out"] == [
                {"provider": "annex", "model": "annex/up-1", "reason": "its task is `upscale`, not `edit`"}
            ]
            lab.edits.always(faults.broken)
            with pytest.raises(AllProvidersExhausted):
                await endpoints.edit_images(running.gateway, running.call(body))
            assert len(lab.edits.received) == 1
            assert annex.others.received == []


async def test_without_fallbacks_nobody_else_is_tried(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.images.always(faults.broken)
        with pytest.raises(AllProvidersExhausted):
            await running.image(provider={"allow_fallbacks": False})
        assert len(running.annex.images.received) == 0
        made = await running.image(provider={"order": ["lab"]})
        assert [attempt["provider"] for attempt in made["metadata"]["attempts"]] == ["lab", "annex"]


async def test_a_video_lists_its_attempts(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        running.lab.videos.next(faults.broken)
        started = await running.video(metadata={"attempts": "mine", "shot": "7"})
        video = await running.wait_for_video(started.json["id"])
        attempts = [(attempt["provider"], attempt["outcome"]) for attempt in video["metadata"]["attempts"]]
        assert attempts == [("lab", "broken"), ("annex", "made")]
        assert "attempts" not in started.json["metadata"]
        assert video["metadata"]["shot"] == "7"


async def test_refusals_name_the_part_and_the_providers(open_gateway: OpenGateway) -> None:
    cases: list[tuple[Any, str, str]] = [
        ("annex", "provider", "must be an object"),
        ({"only": ["nobody"]}, "provider.only", "served by `lab`, `annex`"),
        ({"only": ["fal"]}, "provider.only", "served by `lab`, `annex`"),
        ({"max_price": {"second": 1}}, "provider.max_price.second", "`request`, `image`"),
        ({"max_price": 0.001}, "provider.max_price", "`lab` would cost 0.04 dollars"),
    ]
    async with open_gateway(annex=True) as running:
        for provider, param, word in cases:
            with pytest.raises(InvalidRequest, match=word) as caught:
                await running.image(provider=provider)
            assert caught.value.param == param
        with pytest.raises(InvalidRequest, match="served by `annex`"):
            await running.image(model="annex/image-1", provider={"only": ["lab"]})


async def test_preferences_do_not_change_which_recording_matches(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True) as running:
        headers = {"x-service-replay": "replay-or-record"}
        first = await running.image(headers=headers, provider={"order": ["annex"]})
        again = await running.image(headers=headers, provider={"order": ["lab"], "sort": "price"})
        plain = await running.image(headers=headers)
        assert first["metadata"]["provider"] == again["metadata"]["provider"] == "annex"
        assert [made["metadata"]["cost"] == 0 for made in (first, again, plain)] == [False, True, True]
        with pytest.raises(InvalidRequest, match="`provider`, which is not a field by which"):
            await running.image(
                headers={**headers, "x-service-replay-match": "specific", "x-service-replay-fields": "model,provider"}
            )


async def test_a_form_names_the_parts_in_brackets_or_as_json(open_gateway: OpenGateway) -> None:
    forms: list[list[tuple[str, str]]] = [
        [("provider[only][]", "annex"), ("provider[allow_fallbacks]", "false"), ("provider[max_price]", "0.5")],
        [("provider", '{"only": ["annex"]}')],
    ]
    image = UploadedFile(png(32, 32), "a.png", "image/png")
    async with open_gateway(annex=True) as running:
        for parts in forms:
            fields = [("image", image), ("model", "edit-1"), ("prompt", "a hat"), ("size", "64x64"), *parts]
            call = running.call(endpoint="/compat/v1/images/edits")
            call = msgspec.structs.replace(call, is_form=True, form=tuple(fields))
            made = (await endpoints.edit_images(running.gateway, call)).json
            assert made["metadata"]["provider"] == "annex"


async def test_a_candidate_that_the_balance_does_not_cover_is_left_out(open_gateway: OpenGateway) -> None:
    async with open_gateway(annex=True, models=CHEAP_ANNEX) as running:
        caller = await running.create_caller_in_new_org("0.02")
        made = await running.image(caller=caller)
        assert (made["metadata"]["provider"], made["metadata"]["cost"]) == ("annex", Decimal("0.01"))
        assert len(running.lab.images) == 0


async def test_the_first_run_of_a_generation_does_not_look_its_candidates_up_again(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_gateway() as running:
        monkeypatch.delattr(type(running.gateway.catalog), "find_candidate")
        assert (await running.image())["metadata"]["provider"] == "lab"
