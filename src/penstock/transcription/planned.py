"""Find the candidates that can serve a call of transcription, and what it may cost at most."""

from collections.abc import Sequence

import msgspec

from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.generations import respond
from penstock.guards.configured import Guard
from penstock.models.preferences import NO_PREFERENCES, read_preferences
from penstock.models.routing import Choice, Costs, Route
from penstock.providers.spec import Model, Transcription
from penstock.schema import Call, Response
from penstock.transcription.plan import ListenPlan, NoTimes, detail_of, make_plan, transcription_of
from penstock.transcription.pricing import max_cost, quote
from penstock.transcription.request import ListenRequest, ListenTask
from penstock.transcription.sound import ANY_PART, PartLimits, PreparedSound, prepare_sound
from penstock.upstream.candidate import Candidate
from penstock.values import Nanos, dollars

TASK: ListenTask = "transcription"  # of the records; a translation is one, too


class Planned(msgspec.Struct, frozen=True):
    """A call, its sound, its candidates in order, and what each of them is asked for."""

    request: ListenRequest
    sound: PreparedSound
    choice: Choice
    plans: dict[int, ListenPlan]  # by the identity of a candidate's model

    @property
    def seconds(self) -> list[float]:
        return [part.seconds for part in self.sound.parts]

    @property
    def prompt(self) -> str:
        return str(self.request.values.get("prompt", ""))

    def plan(self, candidate: Candidate) -> ListenPlan:
        return self.plans[id(candidate.model)]

    def most(self, candidate: Candidate) -> Nanos:
        return max_cost(candidate.model, self.seconds, self.prompt)


async def plan_call(
    gateway: Gateway,
    call: Call,
    request: ListenRequest,
    *,
    route: Route | None = None,
    sound: PreparedSound | None = None,
    is_recorded: bool = False,
) -> Planned:
    """The candidates that can serve the call, and its sound in parts that each of them takes. Raises InvalidRequest.

    `route` is that of a mock. A `sound` that was prepared already is used if its parts will do. A call that
    `is_recorded` asks for the finest times, so that every form can be made of the recording.
    """
    route = route or gateway.routing.route(request.model, (request.task,), call.caller.org_id)
    plans: dict[int, ListenPlan] = {}

    def check(model: Model) -> None:
        plans[id(model)] = make_plan(model, request, is_recorded=is_recorded)

    written = request.preferences
    preferences = NO_PREFERENCES if written is None else read_preferences(written, TASK)
    try:
        choice = await gateway.routing.choose(route, check, preferences, task=TASK, org_id=call.caller.org_id)
    except NoTimes as problem:
        raise _with_other_models(gateway, call, request, problem) from None
    limits = _limits([transcription_of(candidate.model) for candidate in choice.route.candidates])
    if sound is None or not sound.fits(limits):
        sound = await prepare_sound(gateway, call, request, limits)
    planned = Planned(request, sound, choice, plans)
    if written is None:
        return planned
    return msgspec.structs.replace(planned, choice=choice.in_preferred_order(lambda each: _costs(planned, each)))


def _limits(specs: Sequence[Transcription]) -> PartLimits:
    """How large parts may be that each model takes."""
    return PartLimits(
        min(ANY_PART.size_bytes, *(spec.max_bytes for spec in specs)),
        min(ANY_PART.seconds, *(spec.max_seconds for spec in specs)),
    )


def _costs(planned: Planned, candidate: Candidate) -> Costs | None:
    """What a call may cost at most in dollars, by the names of `max_price`; None if the price is not known."""
    return {"request": dollars(planned.most(candidate))} if candidate.model.prices else None


def _with_other_models(gateway: Gateway, call: Call, request: ListenRequest, problem: NoTimes) -> InvalidRequest:
    """The refusal of a model that gives no times, with the names of models that do."""
    names = [
        model
        for model in gateway.catalog.listed_ids((request.task,))
        if call.caller.may_use(model) and _gives_times(gateway, model, request)
    ]
    more = f" These do: {', '.join(f'`{name}`' for name in names[:10])}." if names else ""
    return InvalidRequest(problem.message + more, param=problem.param)


def _gives_times(gateway: Gateway, model: str, request: ListenRequest) -> bool:
    for candidate in gateway.catalog.serving(model):
        if candidate.model.op.task == request.task:
            try:
                detail_of(candidate.model, request)
            except NoTimes:
                continue
            return True
    return False


def estimate(planned: Planned, guards: Sequence[Guard]) -> Response:
    """The response to a dry run; the guards may refuse the transcript."""
    choice = planned.choice
    tried = [
        respond.tried_candidate(candidate, planned.most(candidate), choice.reason(candidate))
        for candidate in choice.route.candidates
    ]
    first = choice.route.first
    found = quote(first.model, planned.seconds, planned.prompt)
    return respond.estimate(
        planned.request.model, first.provider.slug, found, tried, choice.route.left_out, guards=guards
    )
