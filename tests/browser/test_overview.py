"""The overview: what is shown is the sum of the records, with 100,000 of them; and what an empty gateway shows."""

import re
import time
from collections import Counter
from statistics import median_low

import pytest

from tests.browser.chromium import Browser, sign_in
from tests.browser.history import DAY_MS, write_history
from tests.stories.processes import Installation, Serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

CELLS = "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)"


def dollars(text: str) -> float:
    return float(text.replace("$", "").replace(",", ""))


def figure(browser: Browser, name: str) -> str:
    return browser.text(f"#{name} strong")


def test_a_new_gateway_shows_what_to_do_first(served: Serving, browser: Browser) -> None:
    sign_in(browser, served.url, served.key)
    browser.until(lambda: "Make your first image" in browser.text("main"), "the first steps are not shown")
    assert "Bearer YOUR_KEY" in browser.text(".steps pre")
    assert served.key not in browser.text("main")
    browser.press("Open the playground", "main")
    browser.until(lambda: browser.has("#run"), "the playground is not opened")
    assert browser.errors() == []


def test_every_figure_is_the_sum_of_100_000_records(story: Installation, browser: Browser) -> None:
    with story.serving():
        pass  # creates the database and the first key
    requests = write_history(story.data / "penstock.db", days=28, per_day=6200)
    assert len(requests) > 100_000
    counts = Counter(request.status for request in requests)
    spend = sum(request.cost for request in requests) / 1e9
    with story.serving() as served:
        sign_in(browser, served.url, served.key, "overview?range=month&by=model")
        browser.until(lambda: figure(browser, "requests") != "", "the figures are not shown")
        total = served.call("GET", "/v1/usage?group_by=model").json["total"]
        assert (total["requests"], total["cost"]) == (len(requests), pytest.approx(spend))
        assert {name: total[name] for name in ("completed", "failed", "rejected")} == {
            "completed": counts["completed"],
            "failed": counts["upstream_failure"],
            "rejected": counts["rejected"],
        }
        assert figure(browser, "requests") == f"{len(requests):,}"
        assert dollars(figure(browser, "spend")) == pytest.approx(spend, abs=0.005)
        failed, rejected = re.findall(r"[\d,]*\d", browser.text("#requests > span:last-child"))
        assert [int(failed.replace(",", "")), int(rejected.replace(",", ""))] == [
            counts["upstream_failure"],
            counts["rejected"],
        ]
        rate = counts["completed"] / (counts["completed"] + counts["upstream_failure"])
        assert figure(browser, "success") == f"{rate * 100:.1f} %"
        usual = median_low([request.duration_ms for request in requests if request.status == "completed"])
        assert figure(browser, "latency") in {f"{usual / 1000:.1f} s", f"{usual} ms", f"{(usual + 1) / 1000:.1f} s"}

        assert not browser.has("#requests .change"), "there is nothing to compare with"
        browser.press("7 days", "main")
        now_ms = round(time.time() * 1000)
        start_ms = now_ms // DAY_MS * DAY_MS - 6 * DAY_MS
        this_week = sum(request.created_at_ms >= start_ms for request in requests)
        week_before = sum(2 * start_ms - now_ms <= request.created_at_ms < start_ms for request in requests)
        browser.until(lambda: figure(browser, "requests") == f"{this_week:,}", "not the requests of seven days")
        change = this_week / week_before - 1
        if abs(change) >= 0.005:  # as at some hours of the day; less is not shown
            shown = f"{'↑' if change > 0 else '↓'} {abs(change) * 100:.0f} %"
            browser.until(lambda: browser.text("#requests .change").startswith(shown), f"the change is not {shown}")
        browser.press("30 days", "main")
        browser.until(lambda: figure(browser, "requests") == f"{len(requests):,}", "not all requests")

        models = Counter(request.model for request in requests)
        costs: Counter[str] = Counter()
        for request in requests:
            costs[request.model] += request.cost
        rows = browser.run("return [...document.querySelectorAll('[aria-label=\"By model\"] tbody tr')].map((row) =>"
                           " [row.cells[0].innerText, row.cells[1].innerText, row.cells[6].innerText])")  # fmt: skip
        assert {name: int(number.replace(",", "")) for name, number, _ in rows} == dict(models)
        for name, _, cost in rows:
            assert dollars(cost) == pytest.approx(costs[name] / 1e9, abs=0.005)

        # The tables below the charts: a row for each day, which add up to the same.
        days = browser.run(
            "const [, table] = document.querySelectorAll('.chart table');"
            "return [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
        )
        assert len(days) == 30
        assert sum(int(cell.replace(",", "")) for day in days for cell in day) == len(requests)

        assert browser.errors() == []
