"""Show alerts to operators and how they were delivered, send them again, send a test event, show the secret."""

from penstock.api import query
from penstock.api.endpoints.webhooks import trial_response
from penstock.api.paging import LIMIT, cursors, page_body
from penstock.api.responses import NO_STORE
from penstock.api.route import Query
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.states import MESSAGE
from penstock.store.paging import Pager
from penstock.webhooks.events import ALERT_PREFIX, OPERATOR
from penstock.webhooks.records import MessageRow, complete_message_record, get_message, message_records

ALERTS_QUERY = (
    LIMIT,
    *cursors("alert"),
    Query(name="status", one_of=tuple(MESSAGE), about="In this state."),
    Query(name="event", about="Of this type: `budget.reached`, `balance.low`, `account.failed` or `delivery.failed`."),
)


async def list_alerts(gateway: Gateway, call: Call) -> Response:
    asked = query.read(ALERTS_QUERY, call.query)
    pager = Pager(gateway.store, "message", ALERT_PREFIX, MessageRow, get="get_message_of_org")
    filters = {"state": asked["status"], "event": asked["event"], "request_id": None}
    page = await pager.page(OPERATOR, asked["limit"], asked["starting_after"], asked["ending_before"], **filters)
    records = await message_records(gateway.store, page.data)
    return Response(json=page_body(call, ALERTS_QUERY, page.with_data(records)))


async def redeliver_alert(gateway: Gateway, call: Call) -> Response:
    """Start the deliveries of an ended alert over."""
    message_id = call.path["message_id"]
    await gateway.deliveries.redeliver(message_id, OPERATOR)
    message = await get_message(gateway.store, message_id, OPERATOR)
    assert message is not None, "it was sent again"
    return Response(json=await complete_message_record(gateway.store, message))


async def send_test_alert(gateway: Gateway, call: Call) -> Response:
    """Send a test event to the URL in the setting `alert_url` once, and return the receiver's status."""
    if not gateway.settings.alert_url:
        raise InvalidRequest("The setting `alert_url` is empty, so no alerts are sent.")
    return trial_response(await gateway.sender.send_trial(OPERATOR, gateway.settings.alert_url))


async def retrieve_alert_secret(gateway: Gateway, call: Call) -> Response:
    return Response(json={"key": await gateway.webhook_secrets.get_secret(OPERATOR)}, headers=NO_STORE)
