"""Alerts over HTTP, for operators only; a refused call announces a used budget."""

from pathlib import Path

import pytest

from penstock.api.asgi import AsgiApp, CallState
from penstock.api.endpoints import alerts
from penstock.errors import RateLimited
from penstock.schema import Caller
from tests.api.running import running
from tests.gateway import OpenGateway, RunningGateway, sqlite_only
from tests.webhook_receivers import FIRST_DELAYS, Receiver

ALERT_URL = "https://ops.example.com/alerts"


async def test_only_operators_see_alerts(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        assert (await here.admin("GET", "/v1/alerts")).json["data"] == []
        secret = await here.admin("GET", "/v1/alerts/secret")
        assert secret.json["key"].startswith("whsec_")
        assert secret.headers["cache-control"] == "no-store"
        assert secret.json["key"] != (await here.admin("GET", "/v1/webhooks/secret")).json["key"]
        refused = await here.admin("POST", "/v1/alerts/test")
        assert (refused.status, refused.code) == (400, "INVALID_REQUEST")
        for method, path in (
            ("GET", "/v1/alerts"),
            ("GET", "/v1/alerts/secret"),
            ("POST", "/v1/alerts/test"),
            ("POST", "/v1/alerts/msg_alr_1/redeliver"),
        ):
            response = await here.served.call(method, path, key=here.theirs.admin.key)
            assert response.code == "PERMISSION_DENIED", path


async def refuse_a_video(running: RunningGateway, caller: Caller) -> None:
    """Let the budget of a key refuse a call, and answer that as the API does."""
    app = AsgiApp(running.gateway)
    route, values = app._router.find("POST", b"/compat/v1/videos")
    state = CallState(running.gateway, route, values, {"host": "gateway.example"})
    state.caller = caller
    with pytest.raises(RateLimited) as caught:
        await running.video(caller=caller)
    assert (await app._refuse(state, caught.value)).status == 429


@sqlite_only
async def test_alerts_are_listed_and_sent_again(open_gateway: OpenGateway) -> None:
    async with open_gateway(alert_url=ALERT_URL, alert_balance_usd="0", webhook_delays_seconds=FIRST_DELAYS) as running:
        gateway = running.gateway
        receiver = Receiver(running.clock, 500)
        gateway.sender._client = receiver
        for key in ("one", "two"):
            await refuse_a_video(running, await running.create_caller(usd_per_month="0.10", name=key))
            running.clock.advance(1)

        async def exhausted() -> bool:
            listed = await alerts.list_alerts(gateway, running.call(query={"status": "exhausted"}))
            return len(listed.json["data"]) == 2

        await running.wait_until(exhausted)
        call = running.call(query={"limit": "1"}, endpoint="/v1/alerts")
        page = (await alerts.list_alerts(gateway, call)).json
        [newest] = page["data"]
        assert (newest["event"], newest["request_id"], newest["url"]) == ("budget.reached", None, ALERT_URL)
        assert len(newest["deliveries"]) == 4
        assert page["next_page_url"] == f"/v1/alerts?limit=1&starting_after={newest['id']}"
        receiver.respond = 200
        again = (await alerts.redeliver_alert(gateway, running.call(message_id=newest["id"]))).json
        assert (again["id"], again["body"]["data"]["key_name"]) == (newest["id"], "two")

        async def delivered() -> bool:
            listed = await alerts.list_alerts(gateway, running.call(query={"status": "delivered"}))
            return [each["id"] for each in listed.json["data"]] == [newest["id"]]

        await running.wait_until(delivered)
        tried = (await alerts.send_test_alert(gateway, running.call())).json
        assert (tried["delivered"], tried["url"]) == (True, ALERT_URL)
