"""The arithmetic of votes."""

import pytest

from penstock.trials.scores import Counted, median, pair_scores, scores, wilson


def test_wins_losses_and_ties_count_for_both_models_of_a_pair() -> None:
    counted = [
        Counted(0, 1, "first", 6),
        Counted(0, 1, "second", 2),
        Counted(0, 2, "tie", 4),
        Counted(1, 2, "both_bad", 3),
    ]
    first, second, third = scores(counted, 3)
    assert (first.wins, first.losses, first.ties, first.both_bad, first.win_rate) == (6, 2, 4, 0, 8 / 12)
    assert (second.wins, second.losses, second.both_bad, second.win_rate) == (2, 6, 3, 0.25)
    assert (third.ties, third.both_bad, third.win_rate) == (4, 3, 0.5)
    pairs = pair_scores(counted)
    assert list(pairs) == [(0, 1), (0, 2), (1, 2)]
    assert (pairs[0, 1].wins, pairs[0, 1].losses, pairs[1, 2].win_rate) == (6, 2, None)


def test_without_votes_there_is_no_rate_and_no_interval() -> None:
    (score,) = scores([], 1)
    assert (score.win_rate, score.interval) == (None, None)


# Wilson (1927), as in the tables of Newcombe (1998): 81 of 263, 15 of 148, 0 of 20.
@pytest.mark.parametrize(
    ("wins", "votes", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (20, 20, 0.8389, 1.0)],
)
def test_the_interval_is_that_of_wilson(wins: int, votes: int, low: float, high: float) -> None:
    assert wilson(wins / votes, votes) == pytest.approx((low, high), abs=5e-5)


def test_the_median_is_the_value_in_the_middle() -> None:
    assert (median([]), median([9, 1, 5]), median([1, 9, 5, 7])) == (None, 5, 6)
