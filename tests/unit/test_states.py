"""Allowed changes of state: the interface's states, none out of an end state, every state reachable."""

import pytest

from penstock.states import KEY, MESSAGE, REQUEST, VIDEO, Moves, ended

TABLES = {"video": VIDEO, "request": REQUEST, "message": MESSAGE, "key": KEY}
every_table = pytest.mark.parametrize("moves", TABLES.values(), ids=TABLES)


@pytest.mark.parametrize(
    ("moves", "names"),
    [
        (VIDEO, "queued in_progress completed failed"),
        (REQUEST, "completed pending processing upstream_failure rejected cancelled"),
        (KEY, "active revoked"),
    ],
)
def test_the_states_are_those_of_the_interface(moves: Moves, names: str) -> None:
    assert sorted(moves) == sorted(names.split())


@pytest.mark.parametrize(
    ("moves", "names"),
    [
        (VIDEO, "completed failed"),
        (REQUEST, "completed upstream_failure rejected cancelled"),
        (MESSAGE, ""),  # an operator may send any message again
        (KEY, "revoked"),
    ],
)
def test_end_states(moves: Moves, names: str) -> None:
    assert ended(moves) == set(names.split())


@every_table
def test_changes_lead_to_known_states(moves: Moves) -> None:
    assert {target for targets in moves.values() for target in targets} <= moves.keys()
    assert not any(state in moves[state] for state in moves)


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("queued", "in_progress", True),
        ("queued", "completed", True),
        ("queued", "failed", True),
        ("in_progress", "completed", True),
        ("in_progress", "failed", True),
        ("in_progress", "queued", False),
        ("completed", "failed", False),
        ("failed", "completed", False),
        ("failed", "queued", False),
    ],
)
def test_videos_only_move_forward(before: str, after: str, allowed: bool) -> None:
    assert (after in VIDEO[before]) is allowed


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("pending", "processing", True),
        ("pending", "cancelled", True),  # called off before anybody was asked
        ("processing", "completed", True),
        ("processing", "upstream_failure", True),
        ("processing", "cancelled", True),
        ("processing", "rejected", False),  # a refusal comes before any provider was called
        ("pending", "rejected", False),
        ("processing", "pending", False),
        ("rejected", "completed", False),
        ("cancelled", "completed", False),
        ("upstream_failure", "completed", False),
    ],
)
def test_request_records_only_move_forward(before: str, after: str, allowed: bool) -> None:
    assert (after in REQUEST[before]) is allowed


def test_a_revoked_key_stays_revoked() -> None:
    assert "active" not in KEY["revoked"]
