"""What would have become of one request."""

from typing import Any

import msgspec
import pytest

from penstock.drills.reroute import Outcome, PastRequest, Rerouter, What
from penstock.drills.scenario import read_scenario
from penstock.values import Nanos, nanos
from tests.gateway import OpenGateway, RunningGateway, sqlite_only

pytestmark = sqlite_only
KNOWN = ("lab", "annex", "other")
HOUR_MS = 3_600_000
CENT = nanos("0.01")


def plan(*candidates: tuple[str, int]) -> bytes:
    """The plan of a generation: providers, and the most that each may cost, in cents."""
    found = [
        {"provider": slug, "model": "m", "upstream": f"{slug}-1", "hold": cents * CENT} for slug, cents in candidates
    ]
    return msgspec.json.encode({"candidates": found, "source": {"type": "Live"}})


def past(**changed: Any) -> PastRequest:
    values = {
        "id": "req_1", "kind": "image", "model": "image-1", "provider": "lab", "upstream_model": "lab-1",
        "cost": 4 * CENT, "duration_ms": 2000, "created_at_ms": 0, "input_tokens": None, "cached_tokens": None,
        "output_tokens": None, "plan": plan(("lab", 4)), **changed,
    }  # fmt: skip
    return PastRequest(**values)


def outcome_of(what: What, provider: str | None, cents: int, duration_ms: int) -> Outcome:
    return Outcome(what, provider, Nanos(cents * CENT), duration_ms)


def outcome(running: RunningGateway, request: PastRequest, until_ms: int = HOUR_MS, **changes: list[str]) -> Outcome:
    down, slow, dearer = (changes.get(name, []) for name in ("down", "slow", "dearer"))
    scenario = read_scenario(down, slow, dearer, KNOWN)
    return Rerouter(running.gateway.catalog, running.gateway.settings, scenario, until_ms).outcome(request)


async def test_a_request_of_another_provider_stays_as_it_was(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        usual = outcome_of("unaffected", "lab", 4, 2000)
        assert outcome(running, past()) == usual
        assert outcome(running, past(), down=["annex"], slow=["other=4x"], dearer=["annex=2x"]) == usual


async def test_the_next_candidate_of_the_plan_takes_over_at_its_own_price(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        three = plan(("lab", 8), ("annex", 12), ("other", 16))
        assert outcome(running, past(plan=three), down=["lab"]) == outcome_of("failed_over", "annex", 6, 2000)
        both = outcome(running, past(plan=three), down=["lab", "annex"], dearer=["other=2x"])
        assert both == outcome_of("failed_over", "other", 16, 2000)
        free = past(plan=plan(("lab", 0), ("annex", 5)), cost=0)
        assert outcome(running, free, down=["lab"]).cost == 5 * CENT


async def test_a_candidate_that_had_failed_already_does_not_take_over(open_gateway: OpenGateway) -> None:
    async with open_gateway() as running:
        second = past(plan=plan(("annex", 4), ("lab", 4)))
        assert outcome(running, second, down=["lab"]) == outcome_of("failed", None, 0, 0)


async def test_without_another_candidate_a_video_waits_until_its_deadline_and_an_image_fails(
    open_gateway: OpenGateway,
) -> None:
    async with open_gateway(job_deadline_seconds=1800) as running:
        assert outcome(running, past(), down=["lab"]) == outcome_of("failed", None, 0, 0)
        video = past(kind="video", created_at_ms=HOUR_MS - 600_000)
        assert outcome(running, video, down=["lab"]) == outcome_of("waited", "lab", 4, 602_000)
        sound = past(kind="sound", created_at_ms=HOUR_MS - 600_000)
        assert outcome(running, sound, down=["lab"]).what == "waited"
        early = past(kind="video", created_at_ms=HOUR_MS - 1_800_000)
        assert outcome(running, early, down=["lab"]) == outcome_of("failed", None, 0, 0)


async def test_a_slow_provider_serves_late_or_too_late_and_a_dear_one_costs_more(open_gateway: OpenGateway) -> None:
    async with open_gateway(upstream_seconds=10) as running:
        changed = outcome(running, past(), slow=["lab=4x"], dearer=["lab=1.5x"])
        assert changed == outcome_of("unaffected", "lab", 6, 8000)
        assert outcome(running, past(), slow=["lab=6x"]) == outcome_of("failed", None, 0, 10_000)


@pytest.mark.parametrize("cached", [None, 400])
async def test_a_chat_is_routed_by_todays_catalog_and_priced_by_its_tokens(
    open_gateway: OpenGateway, cached: int | None
) -> None:
    tokens = {"input_tokens": 1000, "cached_tokens": cached, "output_tokens": 500}
    async with open_gateway(annex=True) as running:
        chat = past(kind="chat", model="lab/chat", upstream_model="chat-1", plan=None, cost=7, **tokens)
        expected = Outcome("failed_over", "annex", nanos("0.002"), 2000)
        assert outcome(running, chat, down=["lab"]) == expected
        assert outcome(running, chat, down=["lab", "annex"]).what == "failed"
        assert outcome(running, past(kind="chat", model="gone", plan=None), down=["lab"]).what == "unknown"


async def test_speech_that_is_passed_on_is_priced_by_the_prices_of_both(open_gateway: OpenGateway) -> None:
    dear = {"annex/lab/voice": {"price": {"unit": "character", "usd": "0.00003"}}}
    async with open_gateway(annex=True, models=dear) as running:
        speech = past(kind="speech", model="lab/voice", upstream_model="voice-1", plan=None)
        assert outcome(running, speech, down=["lab"]) == outcome_of("failed_over", "annex", 12, 2000)
