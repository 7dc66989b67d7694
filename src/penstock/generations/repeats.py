"""Answer a call for images whose idempotency key was used before: with the images of the first call."""

import msgspec

from penstock.accounts.idempotency import other_call
from penstock.errors import NotFound
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import GenerationRow, get_generation
from penstock.generations import respond
from penstock.generations.retrieve import image_result, unfinished_problem
from penstock.schema import Call, Response
from penstock.values import Nanos, dollars

_PAUSE_SECONDS = 0.25  # between looks at a job that another process may be running


async def repeated_images(
    gateway: Gateway, call: Call, first: GenerationRow, digest: bytes | None, *, is_async: bool
) -> Response:
    """The result of the first call, for which this one waits if need be; it is charged once.

    Raises UnprocessableRequest if the first call asked for something else, and the problem of a first call that failed
    and is not made again, because its outcome is unknown or something was charged.
    """
    if first.body_digest != digest:
        raise other_call(first.id)
    headers = {"idempotent-replayed": "true", "x-request-id": first.id, "x-service-request-id": first.id}
    row = first if is_async else await finished_row(gateway, call, first)
    if is_async and row.status != "completed":
        return Response(status=202, json=respond.image_status(row), headers={**respond.poll_headers(row), **headers})
    try:
        response = await image_result(gateway, row.org_id, row.id, call.base_url)
    except NotFound:
        record = await gateway.requests.get(row.org_id, row.id)
        cost = dollars(Nanos(record.cost if record else 0))
        message = f"The images of the first call with this idempotency key, {row.id}, are gone. It cost {cost} USD."
        raise NotFound(message) from None
    return msgspec.structs.replace(response, headers={**response.headers, **headers})


async def finished_row(gateway: Gateway, call: Call, row: GenerationRow) -> GenerationRow:
    """The generation when it has ended. Raises the problem of a call that waits no longer."""
    until = gateway.clock.monotonic() + gateway.settings.image_wait_seconds
    while row.is_unfinished:
        if gateway.clock.monotonic() >= until:
            raise unfinished_problem(row.id, row.task)
        with gateway.interrupts.allowed(call.line):
            await gateway.clock.sleep(_PAUSE_SECONDS)
        row = await get_generation(gateway.store, row.id, row.org_id) or row
    return row
