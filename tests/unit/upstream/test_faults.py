"""The header by which a call asks for faults."""

import pytest

from penstock.errors import InvalidRequest
from penstock.providers import openai
from penstock.upstream.candidate import Candidate
from penstock.upstream.drill import Fault
from penstock.upstream.faults import check_faults, dropped_deliveries, parse_faults, with_drill
from tests.manual_clock import ManualClock
from tests.unit.upstream.small_model import small_model


def test_every_form_of_a_fault_is_read() -> None:
    text = "fal=503 for 60s; kling=slow 4x; video=lost-after-submit; webhook=drop 2; chat = slow 2.5s"
    assert parse_faults(text) == (
        Fault("fal", "status", 503, for_ms=60_000),
        Fault("kling", "slow", 4, "x"),
        Fault("video", "lost"),
        Fault("webhook", "drop", 2),
        Fault("chat", "slow", 2.5, "s"),
    )
    assert parse_faults("fal=unreachable for 1 s;") == (Fault("fal", "unreachable", for_ms=1000),)


@pytest.mark.parametrize(
    "text",
    [
        "", " ; ", "fal", "fal=", "=503", "fal=200", "fal=399", "fal=600", "fal=50", "fal=slow", "fal=slow 0x",
        "fal=slow 101x", "fal=slow 4", "fal=drop 2", "webhook=503", "webhook=drop 0", "webhook=drop 21",
        "webhook=drop 2 for 60s", "fal=503 for 0s", "fal=503 for 3601s", "fal=503 for 60", "fal=503 for", "fal=lost",
        "fal=٥٠٣", "fal=503, kling=503", ";".join(["fal=503"] * 11), "fal=503" + " " * 1000,
    ],
)  # fmt: skip
def test_a_malformed_header_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"lost-after-submit.*slow 4x.*for 60s.*webhook=drop 2") as caught:
        parse_faults(text)
    assert caught.value.param == "X-Service-Fault"


def test_a_target_is_a_provider_of_the_gateway_or_a_kind_of_call() -> None:
    for target in ("fal", "image", "video", "chat", "speech"):
        check_faults(f"{target}=503", {"fal"})
    with pytest.raises(InvalidRequest, match="names `fall`"):
        check_faults("fal=503; fall=503", {"fal"})


def test_the_most_drops_count() -> None:
    assert dropped_deliveries("webhook=drop 2; fal=503; webhook=drop 5") == 5
    assert dropped_deliveries("fal=503") == dropped_deliveries("") == 0


def test_only_the_candidates_that_a_fault_concerns_have_it() -> None:
    clock = ManualClock()
    plain = Candidate(openai.PROVIDER, small_model())
    assert with_drill(plain, "", "image", clock, 0) is plain
    assert with_drill(plain, "other=503; video=503; webhook=drop 1", "image", clock, 0) is plain
    slug = plain.provider.slug
    drilled = with_drill(plain, f"{slug}=503; video=503; image=slow 2x", "upscale", clock, 0)
    assert drilled.drill is not None
    assert [fault.kind for fault in drilled.drill.faults] == ["status", "slow"]
    assert plain.drill is None
