"""The forecast and the export of costs over HTTP."""

import csv
import io
from decimal import Decimal
from pathlib import Path

from tests.api.running import running


async def test_a_new_organization_has_no_forecast(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        forecast = (await here.get("/v1/usage/forecast")).json
        assert (forecast["month_end"], forecast["spent"]) == (None, 0)
        assert forecast["message"] == "Not enough data: a forecast needs 10 days, and there are 0."
        unknown = await here.get("/v1/usage/forecast?label.customer=a")
        assert (unknown.status, unknown.json["error"]["param"]) == (400, "label.customer")


async def test_the_export_has_a_row_per_day_model_key_and_labels(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        await here.admin("PUT", "/v1/labels", {"declared_labels": [{"name": "customer"}]})
        for customer in ("acme", "acme", "=other"):
            body = {"model": "atelier/echo", "messages": [{"role": "user", "content": "Hello"}]}
            made = await here.served.call(
                "POST",
                "/compat/v1/chat/completions",
                key=here.mine.plain.key,
                body={**body, "labels": {"customer": customer}},
            )
            assert made.status == 200, made
        await here.refused(2)
        exported = await here.get("/v1/usage/focus")
        assert exported.headers["content-type"].startswith("text/csv")
        rows = list(csv.DictReader(io.StringIO(exported.body.decode())))
        assert [(row["Tags"], row["x_request_count"]) for row in rows] == [
            ('{"customer":"=other"}', "1"),
            ('{"customer":"acme"}', "2"),
        ]
        total = (await here.get("/v1/usage")).json["total"]["cost"]
        assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal(str(total))
        assert {(row["ConsumedUnit"], row["ServiceCategory"]) for row in rows} == {
            ("Tokens", "AI and Machine Learning")
        }
        assert (await here.get("/v1/usage/focus?month=2026-13")).json["error"]["param"] == "month"
        assert len((await here.get("/v1/usage/focus?month=2020-01")).body.splitlines()) == 1
