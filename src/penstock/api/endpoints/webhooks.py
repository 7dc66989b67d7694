"""Show webhook messages and their deliveries, send them again, send a test event, show and rotate the secret."""

from penstock.accounts.key_records import ADMIN
from penstock.api import query
from penstock.api.fields import checked_fields
from penstock.api.paging import LIMIT, cursors, page_body
from penstock.api.responses import NO_STORE
from penstock.api.route import Query
from penstock.errors import NotFound, PermissionDenied
from penstock.fields import field_table, integer_field, text_field
from penstock.gateway import Gateway
from penstock.schema import Call, Response
from penstock.states import MESSAGE
from penstock.store.paging import Pager
from penstock.values import iso
from penstock.webhooks.delivery import TrialDelivery
from penstock.webhooks.records import MessageRow, complete_message_record, get_message, message_records

_MAX_OVERLAP_HOURS = 168
_DEFAULT_OVERLAP_HOURS = 24
_HOUR_MS = 3_600_000
MESSAGES_QUERY = (
    LIMIT,
    *cursors("message"),
    Query(name="status", one_of=tuple(MESSAGE), about="In this state."),
    Query(name="event", about="Of this type, such as `video.completed`."),
    Query(name="request_id", about="Of this request."),
)
TRIAL_FIELDS = field_table(text_field("url", "HTTPS URL that gets the test event.", required=True, max_length=2048))
ROTATE_FIELDS = field_table(
    integer_field(
        "overlap_hours",
        "For how long deliveries are also signed with the former secret.",
        low=0,
        high=_MAX_OVERLAP_HOURS,
        default=_DEFAULT_OVERLAP_HOURS,
    )
)


# ------------------------------------------------------------------------------------------------------------- messages


async def list_messages(gateway: Gateway, call: Call) -> Response:
    asked = query.read(MESSAGES_QUERY, call.query)
    pager = Pager(gateway.store, "message", "msg_req", MessageRow, get="get_message_of_org")
    page = await pager.page(
        call.caller.org_id,
        asked["limit"],
        asked["starting_after"],
        asked["ending_before"],
        state=asked["status"],
        event=asked["event"],
        request_id=asked["request_id"],
    )
    records = await message_records(gateway.store, page.data)
    return Response(json=page_body(call, MESSAGES_QUERY, page.with_data(records)))


async def retrieve_message(gateway: Gateway, call: Call) -> Response:
    """Return a message with the event that receivers get."""
    message_id = call.path["message_id"]
    message = await get_message(gateway.store, message_id, call.caller.org_id)
    if message is None:
        raise NotFound(f"No such message: {message_id[:64]}.")
    return Response(json=await complete_message_record(gateway.store, message))


async def redeliver_message(gateway: Gateway, call: Call) -> Response:
    """Start the deliveries of an ended message over."""
    await gateway.deliveries.redeliver(call.path["message_id"], call.caller.org_id)
    return await retrieve_message(gateway, call)


async def redeliver_exhausted_messages(gateway: Gateway, call: Call) -> Response:
    """Start the deliveries of all exhausted messages of the caller's organization over, and return their number."""
    count = await gateway.deliveries.redeliver_exhausted(call.caller.org_id)
    return Response(json={"object": "webhook.redelivery", "count": count})


async def send_test_event(gateway: Gateway, call: Call) -> Response:
    """Send a test event once and return the receiver's status."""
    url = checked_fields(call.json, TRIAL_FIELDS)["url"]
    return trial_response(await gateway.sender.send_trial(call.caller.org_id, url))


def trial_response(sent: TrialDelivery) -> Response:
    """Return how a test event was received."""
    return Response(
        json={
            "object": "webhook.test",
            "message_id": sent.message.id,
            "url": sent.message.url,
            "delivered": sent.result.delivered,
            "status_code": sent.result.status,
            "result": sent.result.text,
            "duration_ms": sent.duration_ms,
        }
    )


# --------------------------------------------------------------------------------------------------------------- secret


async def retrieve_webhook_secret(gateway: Gateway, call: Call) -> Response:
    """Return the secret of the caller's organization; the first call creates it. Raises PermissionDenied where the
    settings leave it to keys with the scope `admin`.
    """
    if gateway.settings.webhook_secret_readers == ADMIN and ADMIN not in call.caller.scopes:
        raise PermissionDenied("On this gateway only keys with the `admin` scope may read the webhook secret.")
    return await _secret_response(gateway, call, await gateway.webhook_secrets.get_secret(call.caller.org_id))


async def rotate_webhook_secret(gateway: Gateway, call: Call) -> Response:
    """Set a new secret. The former one signs too while the overlap lasts."""
    hours = checked_fields(call.json, ROTATE_FIELDS).get("overlap_hours", _DEFAULT_OVERLAP_HOURS)
    return await _secret_response(
        gateway, call, await gateway.webhook_secrets.rotate(call.caller.org_id, hours * _HOUR_MS)
    )


async def _secret_response(gateway: Gateway, call: Call, secret: str) -> Response:
    until_ms = await gateway.webhook_secrets.get_previous_expiry_ms(call.caller.org_id)
    expires = None if until_ms is None else iso(until_ms)
    return Response(json={"key": secret, "previous_expires_at": expires}, headers=NO_STORE)
