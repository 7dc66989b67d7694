"""Every two transactions run at the same time, on Postgres: they may wait for each other, but never in a circle."""

import pytest

from tests.gateway import OpenGateway, postgres_only
from tests.transaction_pairs import TRANSACTIONS, Begin, find_deadlocks

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(600)]


@postgres_only
@pytest.mark.parametrize("first", TRANSACTIONS, ids=lambda first: first.__name__)
async def test_no_two_transactions_deadlock(
    open_gateway: OpenGateway, monkeypatch: pytest.MonkeyPatch, first: Begin
) -> None:
    assert not await find_deadlocks(open_gateway, monkeypatch, [(first, second) for second in TRANSACTIONS])
