"""List providers with the health of their models, and check one with a real call."""

from typing import Any

from penstock.api.endpoints.provider_trials import ENDPOINTS, TrialCall, cheapest_trial, trial_call
from penstock.api.fields import checked_fields
from penstock.errors import Conflict, NotFound, Problem
from penstock.fields import field_table, text_field
from penstock.gateway import Gateway
from penstock.schema import JOB_TASKS, Call, Response
from penstock.values import Nanos, dollars

CHECK_FIELDS = field_table(text_field("model", "Model to call; by default the cheapest.", max_length=256))


async def list_providers(gateway: Gateway, call: Call) -> Response:
    """Return every provider that this gateway knows, on or off, and how the calls to it went."""
    health: dict[object, list[dict[str, object]]] = {}
    for row in gateway.health.report():
        health.setdefault(row["provider"], []).append(row)
    data = [{**provider, "health": health.get(provider["id"], [])} for provider in gateway.catalog.providers.describe()]
    return Response(json={"object": "list", "data": data})


async def check_provider(gateway: Gateway, call: Call) -> Response:
    """Make the cheapest call to a provider as a request of the caller's organization, which is charged and recorded.

    A dry run only tells what it would cost. A video is started and not waited for.
    """
    slug = call.path["provider"]
    if slug not in gateway.catalog.providers.known:
        raise NotFound(f"No such provider: {slug[:64]}.")
    if slug not in gateway.catalog.providers.active:
        reasons = {provider["id"]: provider["reason"] for provider in gateway.catalog.providers.describe()}
        raise Conflict(f"{slug} is off: {reasons[slug]}.", should_retry=False)
    model = checked_fields(call.json, CHECK_FIELDS).get("model")
    trial = await cheapest_trial(gateway, call.caller, slug, model)
    if call.dry_run:
        return Response(json=_check_body(slug, trial, "estimated"))
    path, endpoint = ENDPOINTS[trial.task]
    made = trial_call(gateway, call.caller, path, trial.body)
    started = gateway.clock.monotonic()
    error = None
    status = "started" if trial.task in JOB_TASKS else "works"
    try:
        await endpoint(gateway, made)
    except Problem as problem:
        status = "failed"
        error = {"code": problem.code, "message": problem.message}
    duration_ms = int((gateway.clock.monotonic() - started) * 1000)
    row = await gateway.requests.get(call.caller.org_id, made.id)
    body = _check_body(slug, trial, status)
    return Response(
        json={
            **body,
            "request_id": row.id if row else None,
            "cost": dollars(Nanos(row.cost)) if row and not row.is_open else None,
            "duration_ms": duration_ms,
            "error": error,
        }
    )


def _check_body(slug: str, trial: TrialCall, status: str) -> dict[str, Any]:
    return {
        "object": "provider.check",
        "provider": slug,
        "model": trial.model,
        "kind": trial.task,
        "status": status,
        "estimate": trial.usd,
        "request_id": None,
        "cost": None,
        "duration_ms": None,
        "error": None,
    }
