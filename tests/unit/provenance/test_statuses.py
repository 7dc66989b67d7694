"""Statuses of Content Credentials have an order."""

from penstock.provenance.statuses import GOOD_STATUSES, STATUSES, worst


def test_the_worst_of_several_outputs_is_told() -> None:
    assert worst(["signed", "failed", "none"]) == "failed"
    assert worst(["kept", "signed", "carried"]) == "kept"
    assert worst([]) is None


def test_good_statuses_are_better_than_all_others() -> None:
    assert set(list(STATUSES)[: len(GOOD_STATUSES)]) == GOOD_STATUSES
