"""The parts of a generation: how outputs are divided among calls, and which parts are tried again."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.generation_jobs.parts import AttemptResult, Part, PartHistory, part_sizes
from penstock.generation_jobs.rows import AttemptRow
from penstock.providers.openai_compatible import OPERATIONS
from penstock.providers.spec import Model, Provider, Result
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import Failure, unknown_outcome
from penstock.values import OrgId

ACME = Provider(slug="acme", name="Acme", docs="", base_url="https://acme.example/v1", models=())
CANDIDATE = Candidate(ACME, Model(id="m", upstream="m", op=OPERATIONS["image"], prices=()), "key")
PART = Part(CANDIDATE, 0, 0, 1)
SECOND = Part(CANDIDATE, 0, 1, 1, first=1)
BUSY = Failure("busy", "Later.")
ROW = AttemptRow(
    id="att_1",
    request_id="req_1",
    org_id=OrgId("org_1"),
    round=1,
    part=0,
    candidate=0,
    count=1,
    provider="acme",
    upstream_model="m",
    state="submitted",
    upstream_id="job_1",
    ref=b"{}",
    failure_kind=None,
    failure_message=None,
    http_status=None,
    cost=None,
    check_at_ms=None,
    checks=0,
    created_at_ms=0,
    updated_at_ms=0,
)


@pytest.mark.parametrize(
    ("count", "native_n", "sizes"),
    [(1, 1, [1]), (4, 1, [1, 1, 1, 1]), (10, 4, [4, 4, 2]), (4, 4, [4]), (2, 10, [2]), (10, 3, [3, 3, 3, 1])],
)
def test_outputs_are_split_into_calls(count: int, native_n: int, sizes: list[int]) -> None:
    assert part_sizes(count, native_n) == sizes


@given(st.integers(1, 10), st.integers(1, 10))
def test_parts_add_up_and_are_as_few_as_possible(count: int, native_n: int) -> None:
    sizes = part_sizes(count, native_n)
    assert sum(sizes) == count
    assert all(1 <= size <= native_n for size in sizes)
    assert len(sizes) == -(-count // native_n)


def test_a_divided_part_has_the_outputs_of_the_whole() -> None:
    whole = Part(CANDIDATE, 2, 3, 5, first=4)
    assert [(part.key, part.count, part.first) for part in whole.divided(2)] == [
        ((2, 3), 2, 4),
        ((2, 4), 2, 6),
        ((2, 5), 1, 8),
    ]


# -------------------------------------------------------------------------------------------------------------- history


def test_a_failed_part_is_tried_in_the_next_round_if_the_failure_may_pass() -> None:
    history = PartHistory()
    history.add_outcome(PART, BUSY)
    history.add_outcome(SECOND, Failure("broken", "No."))
    assert (history.final_failure(PART), history.final_failure(SECOND)) == (BUSY, Failure("broken", "No."))
    history.round += 1
    assert (history.final_failure(PART), history.final_failure(SECOND)) == (None, Failure("broken", "No."))


def test_outcomes_of_this_run() -> None:
    history = PartHistory()
    assert not history.has_unknown_outcome
    result = AttemptResult(PART, "att_1", Result(), (), ())
    history.add_outcome(PART, result)
    history.add_outcome(SECOND, unknown_outcome("Gone."))
    assert history.made == [result]
    assert history.has_unknown_outcome


def test_an_attempt_that_an_earlier_run_left_open() -> None:
    history = PartHistory.of_attempts([ROW], set())
    assert history.open_attempt(PART) == ROW
    assert history.open_attempt(SECOND) is None
    assert history.is_resumed
    assert (history.has_open_attempt_at(0), history.has_open_attempt_at(1)) == (True, False)
    assert history.is_recorded("att_1", "submitted")
    assert not history.is_recorded("att_1", "failed")
    history.add_outcome(PART, BUSY)
    assert history.open_attempt(PART) is None
    assert not history.is_resumed


def test_an_attempt_that_was_stored_and_not_sent_is_taken_once() -> None:
    history = PartHistory.of_attempts([msgspec.structs.replace(ROW, state="intent", ref=None)], {"att_1"})
    assert not history.is_resumed
    assert history.take_unsent(PART) == "att_1"
    assert history.take_unsent(PART) is None


@pytest.mark.parametrize(
    ("state", "kind", "ref", "failure"),
    [
        ("failed", "busy", None, Failure("busy", "Later.")),
        ("failed", "busy", b"{}", Failure("busy", "Later.", accepted=True)),
        ("failed", "unsent", None, Failure("unsent", "Later.", sent=False)),
        ("unknown", "timeout", None, Failure("timeout", "Later.", unknown=True)),
    ],
)
def test_failures_of_earlier_runs(state: str, kind: str, ref: bytes | None, failure: Failure) -> None:
    changes = {"state": state, "failure_kind": kind, "failure_message": "Later.", "ref": ref, "round": 3}
    history = PartHistory.of_attempts([msgspec.structs.replace(ROW, **changes)], set())
    assert history.round == 3
    assert history.final_failure(PART) == failure
