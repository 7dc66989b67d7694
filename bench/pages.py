"""Measure how soon the pages are painted, what they transfer, and how long the overview takes.

    python -m bench.pages [--records 100000]

Needs Chromium and chromedriver. The gateway is new but for requests of the last 28 days, written into its database.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from tests.browser.chromium import Browser, chromium, sign_in
from tests.browser.history import write_history
from tests.stories.processes import Installation, Serving

VISITS = 5
DAYS = 28
PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
BYTES = "return performance.getEntriesByType('resource').reduce((sum, each) => sum + each.transferSize, 0)"


def visit(browser: Browser, served: Serving) -> tuple[float, int]:
    """Open the sign-in page without the browser's cache; return when it was painted, and the bytes transferred."""
    browser.open("about:blank")
    browser.forget_files()
    browser.open(served.url + "/")
    browser.until(lambda: browser.run(PAINT) is not None, "nothing is painted")
    return browser.run(PAINT), browser.run(BYTES)


def overview_ms(browser: Browser) -> float:
    """Return how long it takes from choosing a period to its figures."""
    started = time.perf_counter()
    browser.go("overview?range=month&by=model")
    browser.until(lambda: browser.text("#requests strong") not in ("", "0"), "the figures are not shown")
    return (time.perf_counter() - started) * 1000


def measure(records: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gateway = Installation(Path(folder) / "data", "", None)
        with gateway.serving():
            pass  # creates the database and the first key
        written = write_history(gateway.data / "penstock.db", days=DAYS, per_day=records * 16 // (10 * DAYS))
        with gateway.serving() as served, chromium(Path(folder)) as browser:
            visits = [visit(browser, served) for _ in range(VISITS)]
            print(f"first paint of the sign-in page {statistics.median(paint for paint, _ in visits):8.0f} ms")
            print(f"transferred for it              {visits[0][1] / 1000:8.0f} kB")
            sign_in(browser, served.url, served.key, "keys")
            print(f"overview of {len(written):,} requests   {overview_ms(browser):8.0f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    measure(parser.parse_args().records)
