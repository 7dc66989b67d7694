"""The arithmetic of votes: wins, losses and ties of models, and the interval in which a win rate lies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal, NamedTuple

Choice = Literal["first", "second", "tie", "both_bad"]
CHOICES: tuple[Choice, ...] = ("first", "second", "tie", "both_bad")
_Z = 1.959964  # of a normal distribution: 95 % lie within so many standard deviations


class Counted(NamedTuple):
    """How many votes on two models, by their places, made a choice."""

    first: int
    second: int
    choice: str
    votes: int


@dataclass(slots=True)
class Score:
    """How a model did in all pairs that it was in."""

    wins: int = 0
    losses: int = 0
    ties: int = 0
    both_bad: int = 0

    @property
    def decided(self) -> int:
        """The votes that count for the win rate: two bad outputs say nothing about which is better."""
        return self.wins + self.losses + self.ties

    @property
    def win_rate(self) -> float | None:
        """Wins by votes; a tie is half a win. None without votes."""
        return (self.wins + self.ties / 2) / self.decided if self.decided else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the win rate by Wilson's score. None without votes."""
        rate = self.win_rate
        return None if rate is None else wilson(rate, self.decided)

    def add(self, choice: str, votes: int, *, is_first: bool) -> None:
        if choice == "tie":
            self.ties += votes
        elif choice == "both_bad":
            self.both_bad += votes
        elif (choice == "first") == is_first:
            self.wins += votes
        else:
            self.losses += votes


def scores(counted: Iterable[Counted], models: int) -> list[Score]:
    """The score of each model, by its place."""
    found = [Score() for _ in range(models)]
    for row in counted:
        found[row.first].add(row.choice, row.votes, is_first=True)
        found[row.second].add(row.choice, row.votes, is_first=False)
    return found


def pair_scores(counted: Iterable[Counted]) -> dict[tuple[int, int], Score]:
    """The score of the first of each two models against the second, for pairs that have votes."""
    found: dict[tuple[int, int], Score] = {}
    for row in counted:
        found.setdefault((row.first, row.second), Score()).add(row.choice, row.votes, is_first=True)
    return found


def wilson(rate: float, votes: int) -> tuple[float, float]:
    """The interval of a share of so many votes by Wilson's score, 95 %."""
    share = _Z * _Z / votes
    middle = (rate + share / 2) / (1 + share)
    half = _Z * sqrt(rate * (1 - rate) / votes + share / (4 * votes)) / (1 + share)
    return max(0.0, middle - half), min(1.0, middle + half)


def median(values: Sequence[int]) -> float | None:
    """The value in the middle, or the mean of the two there. None without values."""
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
