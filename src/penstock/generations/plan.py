"""What a valid call comes down to: who can serve it and for how much, or what stands in for them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from penstock.accounts.prices import quote, snapshot_prices
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.generations.validate import ValidatedCall
from penstock.media.transfer import LoadedInput
from penstock.providers.spec import Model
from penstock.recordings import recordings
from penstock.recordings.recordings import ReplayOptions
from penstock.schema import Call, Fingerprint, Input, Plan, PlannedCandidate, Request, Response
from penstock.store.base import Row
from penstock.upstream import catalog, translate
from penstock.upstream.catalog import Candidate, Route

_TABLE_NAMES = {"image": "images", "mask": "mask", "reference": "input_reference"}


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """Everything about a call that can be known before it is accepted; all that can be refused was."""

    wish: ValidatedCall
    request: Request
    plan: Plan
    pictures: tuple[LoadedInput, ...] = ()
    due_ms: tuple[int, int] = (0, 0)  # first and last byte of an answer that is served from a stand-in
    claims: bool = False  # would make a recording if it is the first call of its likeness


async def make_plan(gateway: Gateway, call: Call, wish: ValidatedCall, kind: str, tasks: Sequence[str]) -> PlannedCall:
    """A recording or a mock where one was asked for, else the providers."""
    asked = None if call.dry_run else recordings.replay_options(call)
    if asked is None:
        return await _live(gateway, wish, tasks)
    sources = [(picture.role, picture.source) for picture in wish.pictures]
    model = gateway.catalog.public_id(wish.request.model)
    like = recordings.fingerprint(kind, wish.request, model, sources, digest(call), asked.match)
    if asked.looks:
        if found := await gateway.recordings.find(call.caller.org_id, asked, like):
            return _replayed(gateway, wish, asked, found)
        if asked.mode == "replay-or-error":
            raise recordings.missing()
    if asked.mode.endswith("mock"):
        return await _mocked(gateway, wish, asked, tasks)
    return _recording(gateway, await _live(gateway, wish, tasks), asked, like)


def estimate(gateway: Gateway, intent: PlannedCall) -> Response:
    """A dry run ends here: validated like any other, nothing run, nothing held."""
    choice = intent.plan.choices[0]
    option = gateway.catalog.option(choice, intent.request.task)
    assert option is not None, "it was routed to a moment ago"
    return respond.estimate(intent.request.model, choice.provider, quote(option.model, intent.request))


# ----------------------------------------------------------------------------------------------------------- providers


async def _live(gateway: Gateway, wish: ValidatedCall, tasks: Sequence[str]) -> PlannedCall:
    route = gateway.catalog.route(wish.request.model, tasks, gateway.health.is_healthy)
    route, request = _fitting(route, wish)
    pictures = [await gateway.transfer.load_input(one.role, one.source, one.param) for one in wish.pictures]
    _check_mask(pictures)
    request = msgspec.structs.replace(request, inputs=_inputs(pictures))
    choices = tuple(_choice(option, request) for option in route.candidates)
    return PlannedCall(wish, request, Plan(choices, route.forced), tuple(pictures))


def _fitting(route: Route, wish: ValidatedCall) -> tuple[Route, Request]:
    """The options that can do what is asked, and the request with what the model would assume."""
    task = route.first.model.op.task
    request = translate.with_defaults(msgspec.structs.replace(wish.request, task=task), route.first.model)
    roles = [picture.role for picture in wish.pictures]
    counts = {_TABLE_NAMES[role]: roles.count(role) for role in set(roles)}

    def check(model: Model, wanted: Request) -> None:
        translate.check(model, wanted)
        translate.check_inputs(model, counts)

    route = catalog.capable_route(route, request, check)
    if task == "edit" and not request.values.get("prompt"):
        raise InvalidRequest("`prompt` is required, except by upscale models.", param="prompt")
    return route, request


def _choice(option: Candidate, request: Request) -> PlannedCandidate:
    return PlannedCandidate(
        provider=option.provider.slug,
        model=option.model.id,
        upstream=option.model.upstream,
        prices=snapshot_prices(option.model.prices),
        hold=quote(option.model, request).total,
        send=option.model.op.send,
    )


def _inputs(pictures: Sequence[LoadedInput]) -> tuple[Input, ...]:
    """What pricing needs to know of them; they get their places when the call is accepted."""
    return tuple(Input(one.role, "", one.content_type, one.width, one.height, len(one.data)) for one in pictures)


def _check_mask(pictures: Sequence[LoadedInput]) -> None:
    mask = next((one for one in pictures if one.role == "mask"), None)
    source = next((one for one in pictures if one.role == "image"), None)
    if mask and source and (mask.width, mask.height) != (source.width, source.height):
        raise InvalidRequest(
            f"`mask` must have the image's dimensions, {source.width}x{source.height}; "
            f"it has {mask.width}x{mask.height}.",
            param="mask",
        )


# ----------------------------------------------------------------------------------------------------------- stand-ins


def _recording(gateway: Gateway, intent: PlannedCall, asked: ReplayOptions, like: Fingerprint) -> PlannedCall:
    """Live, as far as the providers are concerned; perhaps to be kept."""
    records = gateway.recordings.new_id() if asked.stores else None
    plan = msgspec.structs.replace(intent.plan, asked=True, records=records, likeness=like if records else None)
    claims = asked.mode == "replay-or-record"
    return PlannedCall(intent.wish, intent.request, plan, intent.pictures, claims=claims)


def _replayed(gateway: Gateway, wish: ValidatedCall, asked: ReplayOptions, found: Row) -> PlannedCall:
    """No route is needed: the provider may be long gone."""
    known = msgspec.json.decode(found["result"], type=recordings.Recorded)
    choice = PlannedCandidate(known.provider, found["model"], known.executed_model.partition("/")[2])
    request = msgspec.structs.replace(wish.request, task=found["task"])
    due = recordings.due(asked.latency, found["duration_ms"], gateway.clock.now_ms())
    plan = Plan((choice,), replays=found["id"], due_ms=due[1], asked=True)
    return PlannedCall(wish, request, plan, due_ms=due)


async def _mocked(gateway: Gateway, wish: ValidatedCall, asked: ReplayOptions, tasks: Sequence[str]) -> PlannedCall:
    """Any model that is known will do, also without its credential; addresses are not fetched."""
    _, request = _fitting(gateway.catalog.known_route(wish.request.model, tasks), wish)
    at_hand = [one for one in wish.pictures if not (isinstance(one.source, str) and one.source[:5] != "data:")]
    pictures = [await gateway.transfer.load_input(one.role, one.source, one.param) for one in at_hand]
    _check_mask(pictures)
    mock = gateway.catalog.mock(request.task)
    due = recordings.due(asked.latency, 0, gateway.clock.now_ms())
    choice = PlannedCandidate(mock.provider.slug, mock.model.id, mock.model.upstream)
    plan = Plan((choice,), mocks=True, due_ms=due[1], asked=True)
    request = msgspec.structs.replace(request, inputs=_inputs(pictures))
    return PlannedCall(wish, request, plan, tuple(pictures), due)


def digest(call: Call) -> bytes:
    """Tells whether a repeated call says the same; a form's boundary is new each time, its parts are not."""
    if not call.is_form:
        return hashlib.sha256(call.body).digest()
    parts = [(name, value if isinstance(value, str) else value.data) for name, value in call.form]
    return hashlib.sha256(msgspec.msgpack.encode(parts)).digest()
