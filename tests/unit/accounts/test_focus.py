"""The rows of the FOCUS export: sums, quantities and what is left out."""

from collections.abc import AsyncIterator
from typing import Any

from penstock.accounts.focus import FocusExport
from penstock.accounts.request_records import RequestRow, encode_lines
from penstock.schema import CostLine
from penstock.values import DAY_MS, Nanos, OrgId

EMPTY = dict.fromkeys(RequestRow.__struct_fields__)
MONTH = FocusExport(org_id=OrgId("org_1"), org_name="Studio", issuer="Us", start_ms=0, end_ms=31 * DAY_MS)


async def requests(*changes: dict[str, Any]) -> AsyncIterator[RequestRow]:
    for number, values in enumerate(changes):
        usual = {
            "org_id": OrgId("org_1"), "id": f"req_{number}", "key_id": "key_1", "created_at_ms": 5, "endpoint": "/",
            "status": "completed", "hold": 0, "cost": 7, "kind": "image", "model": "m", "provider": "fal",
            "upstream_model": "fal/m",
        }  # fmt: skip
        yield RequestRow(**{**EMPTY, **usual, **values})


def lines(metric: str, quantity: float) -> dict[str, Any]:
    return {"cost_lines": encode_lines([CostLine(metric, quantity, "1", Nanos(7))])}


async def test_equal_requests_of_a_day_are_one_row() -> None:
    rows = await MONTH.rows(
        requests(lines("image", 2), lines("image", 1), {"created_at_ms": DAY_MS}, {"labels": '{"customer":"a"}'})
    )
    found = [(row["ChargePeriodStart"][:10], row["Tags"], row["BilledCost"], row["ConsumedQuantity"]) for row in rows]
    assert found == [
        ("1970-01-01", '{"customer":"a"}', "0.000000007", ""),
        ("1970-01-01", "{}", "0.000000014", "3"),
        ("1970-01-02", "{}", "0.000000007", ""),
    ]
    assert {row["InvoiceIssuerName"] for row in rows} == {"Us"}


async def test_videos_count_seconds_and_chats_tokens() -> None:
    video = {"kind": "video", **lines("second", 2.5)}
    chat = {"kind": "chat", "input_tokens": 3, "output_tokens": 4}
    rows = await MONTH.rows(requests(video, chat))
    assert [(row["ConsumedQuantity"], row["ConsumedUnit"]) for row in rows] == [("7", "Tokens"), ("2.5", "Seconds")]


async def test_what_cost_nothing_and_failed_is_left_out() -> None:
    failed = {"status": "upstream_failure", "cost": 0}
    charged = {"status": "cancelled", "cost": 3}
    rows = await MONTH.rows(requests(failed, charged, {"status": "completed", "cost": 0, "model": None}))
    assert [(row["x_request_count"], row["ServiceName"]) for row in rows] == [("1", ""), ("1", "m")]
