"""Request records as CSV."""

import csv
import io
from pathlib import Path

from penstock.api.endpoints.csv_export import COLUMNS
from tests.api.running import running


async def test_everything_that_matches_is_exported(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        made = await here.refused(5)
        await here.refused(2, here.theirs)
        second = (await here.get(f"/v1/requests/{made[1]}")).json["created_at"]
        for query, wanted in (("", made), (f"&created_after={second}", made[:2]), ("&status=completed", [])):
            response = await here.get(f"/v1/requests?format=csv{query}")
            assert response.headers["content-type"] == "text/csv; charset=utf-8"
            assert "requests.csv" in response.headers["content-disposition"]
            rows = list(csv.DictReader(io.StringIO(response.body.decode(), newline="")))
            assert [row["id"] for row in rows] == wanted
        empty = await here.get("/v1/requests?format=csv&kind=chat")
        assert empty.body.decode() == ",".join(COLUMNS) + "\r\n"
        accepted = await here.served.call(
            "GET", "/v1/requests", key=here.mine.plain.key, headers={"accept": "text/csv"}
        )
        assert accepted.body.count(b"\r\n") == 6


async def test_numbers_are_those_of_the_record(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        body = {"model": "atelier/echo", "messages": [{"role": "user", "content": "hello"}]}
        await here.served.call("POST", "/compat/v1/chat/completions", key=here.mine.plain.key, body=body)
        record = (await here.get("/v1/requests")).json["data"][0]
        text = (await here.get("/v1/requests?format=csv")).body.decode()
        (row,) = csv.DictReader(io.StringIO(text, newline=""))
        for name in (
            "cost",
            "duration_ms",
            "input_tokens",
            "output_tokens",
            "request_size_bytes",
            "response_size_bytes",
        ):
            assert float(row[name]) == record[name], name
        assert float(row["cost"]) > 0


async def test_a_text_that_is_a_formula_is_not_run_by_a_spreadsheet(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for model in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "a;=1+1;b", 'a"b,c\nd'):
            body = {"prompt": "x", "model": model}
            await here.served.call("POST", "/compat/v1/images/generations", key=here.mine.plain.key, body=body)
        text = (await here.get("/v1/requests?format=csv")).body.decode()
        models = {row["model"] for row in csv.DictReader(io.StringIO(text, newline=""))}
        assert {"'=1+1", "'+1", "'-1", "'@SUM(A1)", "a;'=1+1;b", 'a"b,c\nd'} <= models
        assert not any(model.startswith(("=", "+", "-", "@", "\t")) for model in models)


async def test_pages_and_summary_cannot_be_combined_with_csv(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        for name, value in (("limit", "5"), ("summary", "true"), ("starting_after", "req_x")):
            response = await here.get(f"/v1/requests?format=csv&{name}={value}")
            assert (response.status, response.json["error"]["param"]) == (400, name)
        assert (await here.get("/v1/requests?format=xml")).json["error"]["param"] == "format"
