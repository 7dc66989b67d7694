"""The forecast: weekdays, an interval that holds what it says on simulated years, and too little data."""

import random
from datetime import UTC, datetime, timedelta

from penstock.accounts.forecast import HISTORY_DAYS, Forecast, forecast_record
from penstock.values import DAY_MS

START = datetime(2026, 1, 5, tzinfo=UTC)  # a Monday


def ms(day: datetime) -> int:
    return int(day.timestamp()) * 1000


def next_month(day: datetime) -> datetime:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


def simulated_year(seed: int) -> list[int]:
    """The costs of 400 days in nano-dollars: less at weekends, with noise and some days with a peak."""
    draw = random.Random(seed)
    costs = []
    for number in range(400):
        base = 40.0 if (START + timedelta(days=number)).weekday() >= 5 else 100.0
        noise = draw.lognormvariate(0, 0.35) * (draw.choice([2, 3]) if draw.random() < 0.04 else 1)
        costs.append(round(base * noise * 1e7))
    return costs


def test_the_interval_holds_the_end_of_four_months_in_five() -> None:
    inside = asked = 0
    for seed in range(10):
        costs = simulated_year(seed)
        for number in range(HISTORY_DAYS, 365, 10):
            today = START + timedelta(days=number)
            month = next_month(today)
            spent = sum(costs[max(0, number - (today.day - 1)) : number])
            actual = spent + sum(costs[number : (month - START).days])
            low, likely, high = Forecast(costs[number - HISTORY_DAYS : number], spent, ms(today), ms(month)).month_end()
            assert low <= likely <= high
            asked += 1
            inside += low <= actual <= high
    assert 0.75 <= inside / asked <= 0.90, inside / asked


def test_a_steady_week_is_forecast_exactly() -> None:
    daily = [100, 100, 100, 100, 100, 40, 40] * 4  # Monday to Sunday
    today = START + timedelta(days=28)  # Monday, 2 February
    forecast = Forecast(daily, 500, ms(today), ms(next_month(today)))
    low, likely, high = forecast.month_end()
    # From Monday the 2nd to Saturday the 28th.
    assert low == likely == high == 500 + 3 * 580 + 5 * 100 + 40


def test_the_day_on_which_a_budget_ends() -> None:
    today = START + timedelta(days=28, hours=12)
    forecast = Forecast([100] * 28, 500, ms(today), ms(next_month(today)))
    assert forecast.reaches(500) == "2026-02-02"
    assert forecast.reaches(550) == "2026-02-02", "half of the day is left"
    assert forecast.reaches(551) == "2026-02-03"
    assert forecast.reaches(10_000) is None


def test_below_ten_days_there_is_none() -> None:
    start, end = ms(datetime(2026, 2, 1, tzinfo=UTC)), ms(datetime(2026, 3, 1, tzinfo=UTC))
    now = start + 20 * DAY_MS
    for days, known in ((0, 0), (9, 9), (10, 10)):
        body = forecast_record([0] * (28 - days) + [5] * days, 7, 1_000_000, now, start, end)
        assert (body["days_of_history"], body["month_end"] is None) == (known, known < 10)
        assert (body["message"] is None) == (known >= 10)
        assert body["month"] == "2026-02"
