"""The balance over HTTP."""

from pathlib import Path

from tests.api.running import running


async def test_the_balance_is_a_number_of_dollars(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        assert (await here.get("/v1/balance")).json == {
            "object": "balance",
            "billing_type": "prepaid",
            "available": {"amount": 10, "currency": "usd"},
            "held": 0,
            "pace": {"days": 7.0, "spent": 0, "per_day": 0, "days_left": None},
        }
        assert (await here.get("/v1/balance", here.theirs)).json["available"]["amount"] == 0
