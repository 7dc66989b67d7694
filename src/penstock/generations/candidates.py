"""Which candidates can serve an image, video or sound call, and at what price; `models.routing` puts them in order."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from msgspec.structs import replace

from penstock.accounts.prices import quote
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.generations.input_sources import InputSource
from penstock.generations.validate import ValidatedCall
from penstock.models.preferences import NO_PREFERENCES, read_preferences
from penstock.models.routing import Choice, Costs, Route, affordable_route, capable_route, route_of_task
from penstock.providers.row_names import input_row
from penstock.providers.spec import Model
from penstock.schema import JOB_TASKS, Input, Request
from penstock.upstream import checks
from penstock.upstream.translate import with_defaults
from penstock.values import INPUT_VIDEOS, OrgId, dollars


async def find_candidates(gateway: Gateway, org_id: OrgId, validated: ValidatedCall, tasks: Sequence[str]) -> Choice:
    """The candidates that can serve a call and that the caller allows. Its input images are only counted."""
    route = gateway.routing.route(validated.request.model, tasks, org_id)
    task = validated.request.task
    first_request = with_defaults(validated.request, route.first.model)
    preferences = NO_PREFERENCES
    if validated.provider is not None:
        preferences = read_preferences(validated.provider, task)
    names = {input_row(item.role) for item in validated.inputs}

    def check(model: Model) -> None:
        # With preferences any model may become the first one, whose defaults count.
        may_be_first = validated.provider is not None
        _check(model, with_defaults(validated.request, model) if may_be_first else first_request, validated.inputs)
        checks.check_fetchable(model, names, gateway.settings.url_for_providers)

    choice = await gateway.routing.choose(route, check, preferences, task=task, org_id=org_id)
    _check_prompt(choice.route, validated)
    return choice


def order_candidates(choice: Choice, validated: ValidatedCall, inputs: tuple[Input, ...]) -> tuple[Choice, Request]:
    """The candidates in the preferred order, and the request with the task and the defaults of the first; candidates
    for another task are left out. Raises InvalidRequest if all candidates are too expensive, or an input video is too
    short, too long or too large for all of them.
    """
    written = replace(validated.request, inputs=inputs) if inputs else validated.request
    route = choice.route
    if any(item.role in INPUT_VIDEOS for item in inputs):
        route = capable_route(route, lambda model: checks.check_input_video(model, with_defaults(written, model)))
    if validated.provider is None:
        request = with_defaults(written, route.first.model)
        return replace(choice, route=route_of_task(route, request.task)), request
    # A model's own defaults decide what it would cost if it were the first.
    choice = replace(choice, route=route).in_preferred_order(
        lambda candidate: _costs(candidate.model, with_defaults(written, candidate.model))
    )
    request = with_defaults(written, choice.route.first.model)
    route = check_candidates(route_of_task(choice.route, request.task), validated, request)
    route = affordable_route(route, choice.preferences, lambda candidate: _costs(candidate.model, request))
    return replace(choice, route=route), request


def check_candidates(route: Route, validated: ValidatedCall, request: Request) -> Route:
    """The route without candidates that cannot serve the request. Raises InvalidRequest if none can."""
    route = capable_route(route, lambda model: _check(model, request, validated.inputs))
    _check_prompt(route, validated)
    return route


def _check(model: Model, request: Request, inputs: Sequence[InputSource]) -> None:
    """Raise InvalidRequest if the model cannot serve the request with these inputs."""
    names = [input_row(item.role) for item in inputs]
    video_roles = [item.role for item, name in zip(inputs, names, strict=True) if name == "input_reference"]
    checks.check_inputs(model, Counter(names), video_roles)
    checks.check(model, request)


def _check_prompt(route: Route, validated: ValidatedCall) -> None:
    op = route.first.model.op
    if op.task == "edit" and op.takes("prompt") and not validated.request.values.get("prompt"):
        raise InvalidRequest("`prompt` is required, except by upscale models.", param="prompt")


def _costs(model: Model, request: Request) -> Costs | None:
    """What a request would cost in dollars, by the names of `max_price`; None if the price is not known."""
    if not model.prices:
        return None
    usd = dollars(quote(model, request).total)
    if request.task not in JOB_TASKS:
        return {"request": usd, "image": usd / request.n}
    return {"request": usd, "second": usd / (request.n * Decimal(str(request.seconds or 1)))}
