"""Forecast what a month will cost, from the days before."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import sqrt
from typing import Any

from penstock.values import DAY_MS, Nanos, dollars

HISTORY_DAYS = 28
MIN_DAYS = 10
_WEEK = 7
_DRAWS = 1000
_LOW, _HIGH = 0.1, 0.9
# Four weeks show less spread than there is: the quantile of Student's t with three degrees of freedom over the normal
# one. With it, the interval holds about 80 % of the months of a simulated year; see the tests.
_FEW_WEEKS = 1.64 / 1.28


class Forecast:
    """What the rest of a month may cost: the most likely sum, and sums of which four in five lie between two."""

    def __init__(self, daily: Sequence[int], spent: int, now_ms: int, month_end_ms: int) -> None:
        """`daily` are the costs of the last whole days (UTC), oldest first; `spent` is that of this month so far.

        The rest of today counts as the part of a day that it is.
        """
        self._daily = daily[-HISTORY_DAYS:]
        self._spent = spent
        self._today_ms = now_ms // DAY_MS * DAY_MS
        self._days = (month_end_ms - self._today_ms) // DAY_MS  # today and those that follow in the month
        self._today_left = 1 - (now_ms - self._today_ms) / DAY_MS

    def month_end(self) -> tuple[Nanos, Nanos, Nanos]:
        """The forecast of the month: low, most likely and high."""
        expected = self._expected()
        rest = sum(expected)
        sums = self._drawn_sums()
        mean = sum(sums) / len(sums)
        weeks = self._days / _WEEK
        known = len(self._daily) / _WEEK
        wider = sqrt((1 + weeks / known) * known / max(1.0, known - 1)) * _FEW_WEEKS

        def at(quantile: float) -> Nanos:
            drawn = sums[round(quantile * (len(sums) - 1))]
            return Nanos(self._spent + max(0, round(rest + (drawn - mean) * wider)))

        likely = Nanos(self._spent + round(rest))
        return min(at(_LOW), likely), likely, max(at(_HIGH), likely)

    def reaches(self, limit: int) -> str | None:
        """The day (UTC) on which a limit of the month is reached, if it goes on as it went; None: not in this month."""
        sum_so_far: float = self._spent
        for number, cost in enumerate([0.0, *self._expected()]):
            sum_so_far += cost
            if sum_so_far >= limit:
                day = datetime.fromtimestamp(self._today_ms / 1000, UTC) + timedelta(days=max(0, number - 1))
                return f"{day:%Y-%m-%d}"
        return None

    def _expected(self) -> list[float]:
        """The cost of what is left of today and of each further day: the mean of the same weekday."""
        return [self._share(day) * self._mean(day) for day in range(self._days)]

    def _share(self, day: int) -> float:
        return self._today_left if day == 0 else 1.0

    def _mean(self, day: int) -> float:
        same = [cost for place, cost in enumerate(self._daily) if (len(self._daily) + day - place) % _WEEK == 0]
        return sum(same) / len(same)

    def _drawn_sums(self) -> list[float]:
        """Sums of the rest of the month, made of whole weeks of the past that were drawn at random; sorted."""
        draw = random.Random(0)  # noqa: S311 – no secret; the same question has the same answer
        starts = len(self._daily) - _WEEK + 1
        sums = []
        for _ in range(_DRAWS):
            total = 0.0
            for first in range(0, self._days, _WEEK):
                start = draw.randrange(starts)
                week = self._daily[start : start + _WEEK]
                for day in range(first, min(first + _WEEK, self._days)):
                    # The day of the drawn week that has the same weekday.
                    total += self._share(day) * week[(len(self._daily) + day - start) % _WEEK]
            sums.append(total)
        return sorted(sums)


def forecast_record(
    daily: Sequence[int], spent: int, budget: int | None, now_ms: int, month_start_ms: int, month_end_ms: int
) -> dict[str, Any]:
    """The forecast as the API shows it. Below ten days since the first cost there is none."""
    first = next((place for place, cost in enumerate(daily) if cost), len(daily))
    known = daily[first:][-HISTORY_DAYS:]
    body: dict[str, Any] = {
        "object": "forecast",
        "month": f"{datetime.fromtimestamp(month_start_ms / 1000, UTC):%Y-%m}",
        "currency": "usd",
        "spent": dollars(Nanos(spent)),
        "usd_per_month": None if budget is None else dollars(Nanos(budget)),
        "days_of_history": len(known),
        "month_end": None,
        "budget_reached_on": None,
        "message": None,
    }
    if len(known) < MIN_DAYS:
        body["message"] = f"Not enough data: a forecast needs {MIN_DAYS} days, and there are {len(known)}."
        return body
    forecast = Forecast(known, spent, now_ms, month_end_ms)
    low, likely, high = forecast.month_end()
    body["month_end"] = {"low": dollars(low), "likely": dollars(likely), "high": dollars(high)}
    if budget is not None:
        body["budget_reached_on"] = forecast.reaches(budget)
    return body
