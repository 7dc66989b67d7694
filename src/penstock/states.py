"""Allowed changes of state of videos, requests, messages and keys, as tables."""

from collections.abc import Mapping

Moves = Mapping[str, frozenset[str]]


def _moves(**table: str) -> Moves:
    return {state: frozenset(targets.split()) for state, targets in table.items()}


VIDEO = _moves(
    queued="in_progress completed failed",
    in_progress="completed failed",
    completed="",
    failed="",
)
REQUEST = _moves(
    pending="processing completed upstream_failure cancelled",
    processing="completed upstream_failure cancelled",
    completed="",
    upstream_failure="",
    rejected="",  # refused before any provider was called; ended from the start
    cancelled="",
)
MESSAGE = _moves(waiting="delivered exhausted", delivered="waiting", exhausted="waiting delivered")
KEY = _moves(active="revoked", revoked="")


def ended(moves: Moves) -> frozenset[str]:
    """States that nothing leaves."""
    return frozenset(state for state, targets in moves.items() if not targets)
