"""Plan a validated call: which candidates can serve it and at what price, or which recording or mock replaces them."""

from collections.abc import Sequence
from functools import partial

import msgspec

from penstock.accounts.limits import check_model
from penstock.accounts.prices import highest_cost, quote, snapshot_prices
from penstock.errors import InvalidRequest
from penstock.event_loop import run_aside
from penstock.fields import TABLES, UploadedFile
from penstock.gateway import Gateway
from penstock.generation_jobs.rows import Live, Mock, Plan, Recording, Replay
from penstock.generations import respond
from penstock.generations.candidates import check_candidates, find_candidates, order_candidates
from penstock.generations.deliver_to import read_delivery
from penstock.generations.input_sources import InputSource
from penstock.generations.validate import ValidatedCall
from penstock.guards.configured import Guard
from penstock.models.preferences import FIELD
from penstock.models.routing import Choice, Route
from penstock.recordings.fingerprints import make_fingerprint
from penstock.recordings.recordings import recording_id
from penstock.recordings.replay_headers import ReplayOptions, no_match, replay_times
from penstock.recordings.rows import RecordingRow
from penstock.schema import JOB_TASKS, Call, Fingerprint, Input, PlannedCandidate, Request, Response
from penstock.upstream.candidate import Candidate
from penstock.upstream.faults import with_drill
from penstock.upstream.translate import with_defaults
from penstock.values import InputFile, Nanos, OrgId


class PlannedCall(msgspec.Struct, frozen=True):
    """Everything that is known about a call before it is accepted; whatever is invalid about it was refused."""

    validated: ValidatedCall
    request: Request
    plan: Plan
    candidates: tuple[Candidate, ...] = ()  # those of the plan; none if a recording or a mock replaces them
    inputs: tuple[InputFile, ...] = ()
    due_ms: tuple[int, int] = (0, 0)  # when the first and the last byte of a replay or mock are to be sent
    claims_recording: bool = False  # of several alike calls only the first is to record
    choice: Choice | None = None  # how the providers of a live call were chosen


async def make_plan(gateway: Gateway, call: Call, validated: ValidatedCall, tasks: Sequence[str]) -> PlannedCall:
    """Plan a recording or a mock where the call asks for one, else the providers; a model must do one of the tasks.

    Raises a Problem when the key may not use the model, no candidate can serve the call, or no recording matches where
    one is required.
    """
    org_id = call.caller.org_id
    validated = with_delivery(gateway, org_id, validated)
    model = gateway.catalog.public_id(validated.request.model)
    check_model(call.caller, validated.request.model, model)
    options = validated.replay
    if options is None:
        return await _plan_live(gateway, call, validated, tasks)
    _check_match_fields(options, validated.request)
    sources = [(item.role, item.source) for item in validated.inputs]
    size_bytes = sum(len(source.data if isinstance(source, UploadedFile) else source) for _, source in sources)
    fingerprint = await run_aside(
        size_bytes,
        make_fingerprint,
        validated.request,
        model,
        sources,
        validated.body_digest,
        options.match,
    )
    if options.may_replay:
        if found := await gateway.recordings.find(org_id, options, fingerprint):
            return _plan_replay(gateway, org_id, validated, options, found)
        if options.mode == "replay-or-error":
            raise no_match()
    if options.mode.endswith("mock"):
        return await _plan_mock(gateway, org_id, validated, options, tasks)
    planned = await _plan_live(gateway, call, validated, tasks)
    return _with_recording(gateway, call.id, planned, options, fingerprint)


def with_delivery(gateway: Gateway, org_id: OrgId, validated: ValidatedCall) -> ValidatedCall:
    """The call with where copies of its outputs go. Raises InvalidRequest."""
    delivery = read_delivery(gateway.destinations, org_id, validated.deliver_to, validated.deliver_required)
    if delivery is None:
        if validated.retention_seconds == 0:
            message = (
                "`media_retention` may be `0` only if the outputs are delivered: name a destination in `deliver_to`."
            )
            raise InvalidRequest(message, param="media_retention")
        return validated
    request = msgspec.structs.replace(validated.request, delivery=delivery)
    return msgspec.structs.replace(validated, request=request)


def _check_match_fields(options: ReplayOptions, request: Request) -> None:
    """Raise InvalidRequest for a field of a `specific` match that neither the endpoint nor this call has: a misspelt
    one would be absent everywhere, and match everything. So would preferences among providers, which are not compared.
    """
    known = {*TABLES[request.task], *request.extras, "image"} - {FIELD}
    for name in options.fields if options.match == "specific" else ():
        if name not in known:
            raise InvalidRequest(
                f"X-Service-Replay-Fields names `{name}`, which is not a field by which this call can be compared.",
                param="X-Service-Replay-Fields",
            )


def estimate(gateway: Gateway, call: Call, planned: PlannedCall) -> Response:
    """The response to a dry run: the price, with nothing run and nothing held, and who may refuse the outputs."""
    choice = planned.choice
    assert choice is not None, "a dry run has no replay options"
    route = choice.route
    holds = [candidate.hold for candidate in planned.plan.candidates]
    tried = [
        respond.tried_candidate(candidate, hold, choice.reason(candidate))
        for candidate, hold in zip(route.candidates, holds, strict=True)
    ]
    request = planned.request
    found = quote(route.first.model, request)
    is_signed = request.task != "sound" and request.provenance is not None and request.provenance.mode == "sign"
    guards = watching_outputs(gateway, call, request)
    return respond.estimate(
        request.model, route.first.provider.slug, found, tried, route.left_out, is_signed=is_signed, guards=guards
    )


def watching_outputs(gateway: Gateway, call: Call, request: Request) -> list[Guard]:
    """The guards that see what is made for a call before anybody gets it."""
    kind = "edit" if request.task == "upscale" else request.task
    return gateway.guards.watching(kind, call.caller.org_id, "output")


# ----------------------------------------------------------------------------------------------------------- providers


async def _plan_live(gateway: Gateway, call: Call, validated: ValidatedCall, tasks: Sequence[str]) -> PlannedCall:
    org_id = call.caller.org_id
    await gateway.live_models.prepare(validated.request.model, org_id)
    choice = await find_candidates(gateway, org_id, validated, tasks)
    inputs = await _load_inputs(gateway, org_id, validated, validated.inputs)
    choice, request = order_candidates(choice, validated, _describe_inputs(inputs))
    route = choice.route
    holds = [highest_cost(candidate.model, request) for candidate in route.candidates]
    plan = live_plan(route, holds)
    route = drilled_route(gateway, call, request, route)
    return PlannedCall(validated, request, plan, route.candidates, inputs, choice=choice)


def drilled_route(gateway: Gateway, call: Call, request: Request, route: Route) -> Route:
    """The route with the faults that the call asks for."""
    if not request.drill:
        return route
    drill = partial(with_drill, text=request.drill, task=request.task, clock=gateway.clock, started_ms=call.at_ms)
    return msgspec.structs.replace(route, candidates=tuple(map(drill, route.candidates)))


def live_plan(route: Route, holds: Sequence[Nanos]) -> Plan:
    """The plan to ask the candidates of a route; `holds` are the most that each may cost."""
    return Plan(tuple(map(_planned_candidate, route.candidates, holds)), forced=route.forced)


def _planned_candidate(candidate: Candidate, hold: Nanos) -> PlannedCandidate:
    return PlannedCandidate(
        provider=candidate.provider.slug,
        model=candidate.model.id,
        upstream=candidate.model.upstream,
        prices=snapshot_prices(candidate.model.prices),
        hold=hold,
        send=candidate.model.op.send,
        account=candidate.account_id,
        fee_percent=candidate.fee_percent,
    )


async def _load_inputs(
    gateway: Gateway, org_id: OrgId, validated: ValidatedCall, sources: Sequence[InputSource]
) -> tuple[InputFile, ...]:
    """Read and check the input files, and normalise images. Raises InvalidRequest for an unusable one, or if they are
    more together than a form could hold: all are in memory until the call is accepted.
    """
    most = gateway.settings.form_bytes
    policy = validated.request.provenance
    keeps_credentials = policy is not None and policy.mode != "off"
    inputs: list[InputFile] = []
    for place, item in enumerate(sources, 1):
        number = place if keeps_credentials else 0
        loaded = await gateway.media_transfer.load_input(
            item.role, item.source, item.param, for_org=org_id, number=number
        )
        inputs.append(loaded)
        if sum(len(loaded.data) for loaded in inputs) > most:
            raise InvalidRequest(f"The inputs may have at most {most} bytes together.", param=item.param)
    _check_mask(inputs)
    return tuple(inputs)


def _describe_inputs(inputs: Sequence[InputFile]) -> tuple[Input, ...]:
    """What pricing needs to know of the inputs; they get their media ids when the call is accepted."""
    return tuple(
        Input(item.role, "", item.content_type, item.width, item.height, len(item.data), item.seconds, item.frames)
        for item in inputs
    )


def _check_mask(inputs: Sequence[InputFile]) -> None:
    mask = next((item for item in inputs if item.role == "mask"), None)
    image = next((item for item in inputs if item.role == "image"), None)
    if mask and image and (mask.width, mask.height) != (image.width, image.height):
        raise InvalidRequest(
            f"`mask` must have the image's dimensions, {image.width}x{image.height}; "
            f"it has {mask.width}x{mask.height}.",
            param="mask",
        )


# -------------------------------------------------------------------------------------------------- recordings, mocks


def _with_recording(
    gateway: Gateway, request_id: str, planned: PlannedCall, options: ReplayOptions, fingerprint: Fingerprint
) -> PlannedCall:
    """A live plan whose result is recorded if the mode asks for it, and whose response names its source."""
    if options.records and gateway.settings.payloads == "none":
        message = "This gateway stores no payloads, so it cannot record: use another mode of `X-Service-Replay`."
        raise InvalidRequest(message, param="X-Service-Replay")
    source = Recording(recording_id(request_id), fingerprint) if options.records else Live(is_reported=True)
    plan = msgspec.structs.replace(planned.plan, source=source)
    return msgspec.structs.replace(planned, plan=plan, claims_recording=options.mode == "replay-or-record")


def _plan_replay(
    gateway: Gateway, org_id: OrgId, validated: ValidatedCall, options: ReplayOptions, found: RecordingRow
) -> PlannedCall:
    """A plan that replays a recording. No candidates are looked for: its provider may no longer be configured."""
    recorded = found.decode_result()
    candidate = PlannedCandidate(recorded.provider, found.model, recorded.executed_model.partition("/")[2])
    request = msgspec.structs.replace(validated.request, task=found.task)
    is_job = found.kind in JOB_TASKS
    now_ms = gateway.clock.steady_ms()
    due_ms = replay_times(options.latency, found.duration_ms, now_ms, is_video=is_job)
    gateway.delays.add(org_id, due_ms[1], keeps_connection=not is_job)
    return PlannedCall(validated, request, Plan((candidate,), Replay(found.id, due_ms[1])), due_ms=due_ms)


async def _plan_mock(
    gateway: Gateway, org_id: OrgId, validated: ValidatedCall, options: ReplayOptions, tasks: Sequence[str]
) -> PlannedCall:
    """A plan in which a mock stands in for the model, which must be known but needs no credential.

    URLs of inputs are not fetched.
    """
    await gateway.live_models.prepare(validated.request.model, org_id)
    route = Route(*gateway.catalog.find_known(validated.request.model, tasks))
    request = with_defaults(validated.request, route.first.model)
    check_candidates(route, validated, request)
    inputs = await _load_inputs(gateway, org_id, validated, [item for item in validated.inputs if not item.is_url])
    model = gateway.catalog.mock(request.task)
    candidate = PlannedCandidate(model.provider.slug, model.model.id, model.model.upstream)
    due_ms = replay_times(options.latency, 0, gateway.clock.steady_ms())
    gateway.delays.add(org_id, due_ms[1], keeps_connection=request.task not in JOB_TASKS)
    request = msgspec.structs.replace(request, inputs=_describe_inputs(inputs))
    return PlannedCall(validated, request, Plan((candidate,), Mock(due_ms[1])), inputs=inputs, due_ms=due_ms)
