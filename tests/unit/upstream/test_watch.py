"""An attempt in the metrics: how it ended, how long it took, and what it used."""

import asyncio
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock import providers
from penstock.telemetry.metrics import Metrics
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import AttemptFailed, Failure, unknown_outcome
from penstock.upstream.watch import AttemptWatch
from tests.manual_clock import ManualClock
from tests.unit.telemetry.rendering import rendered


class Watched:
    """An attempt of a listed model, with a clock that stands still."""

    def __init__(self, upstream: str | None = None) -> None:
        provider = next(found for found in providers.discover() if found.slug == "openai")
        model = provider.models[0]
        self.clock = ManualClock()
        self.metrics = Metrics({("openai", model.upstream)})
        self.candidate = Candidate(provider, replace(model, upstream=upstream or model.upstream))

    def watch(self, task: str = "image") -> AttemptWatch:
        return AttemptWatch(self.metrics, self.clock, self.candidate, task)

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        """The samples of this name by the values of their labels, which are in alphabetical order."""
        families = text_string_to_metric_families(rendered(self.metrics))
        found = [sample for family in families for sample in family.samples if sample.name == name]
        return {tuple(value for _, value in sorted(sample.labels.items())): sample.value for sample in found}


def test_attempts_are_counted_by_outcome() -> None:
    watched = Watched()
    errors = [
        AttemptFailed(Failure("busy", "x")),
        AttemptFailed(unknown_outcome("x", timed_out=True)),
        asyncio.CancelledError(),
    ]
    for error in errors:
        with pytest.raises(type(error)), watched.watch():
            raise error
    with watched.watch() as refused:
        refused.fail("refused")
    with watched.watch():
        pass
    outcomes = {labels[0]: count for labels, count in watched.samples("penstock_attempts_total").items()}
    assert outcomes == {"busy": 1, "timeout": 1, "interrupted": 1, "refused": 1, "success": 1}


def test_a_stream_counts_when_it_has_ended() -> None:
    watched = Watched()
    with watched.watch("chat") as watch:
        watched.clock.advance(0.2)
        watch.note_first_byte()
        watch.keep_open()
    assert watched.samples("penstock_attempts_total") == {}
    watched.clock.advance(4)
    watch.note_tokens({"input": 5, "cached": 0, "output": 7})
    watch.end()
    assert list(watched.samples("penstock_attempt_seconds_sum").values()) == [pytest.approx(4.2)]
    assert list(watched.samples("penstock_first_byte_seconds_sum").values()) == [pytest.approx(0.2)]
    model = watched.candidate.model.upstream
    assert watched.samples("penstock_tokens_total") == {
        ("input", model, "openai"): 5,
        ("output", model, "openai"): 7,
    }


def test_callers_cannot_make_up_labels() -> None:
    watched = Watched("a-name-of-the-caller")
    with watched.watch() as watch:
        watch.fail("rejected")
    assert list(watched.samples("penstock_attempt_seconds_count")) == [("other", "openai", "image")]
    with watched.watch():
        pass
    assert ("a-name-of-the-caller", "openai", "image") in watched.samples("penstock_attempt_seconds_count")
    for number in range(300):
        watched.metrics.count_attempt("openai", f"model-{number}", "image", "success", 1)
    assert len(watched.samples("penstock_attempt_seconds_count")) == 201
