"""The story of a request, in the order it happens. Start reading here."""

import hashlib
from collections.abc import Sequence

import msgspec

from penstock import billing, catalog, ledger, limits, respond, translate, validate
from penstock.catalog import Route
from penstock.drive import settle_failure
from penstock.errors import Cancelled, Conflict, InvalidRequest, NotFound, UpstreamTimeout
from penstock.failpoints import failpoint
from penstock.gateway import Gateway
from penstock.gather import Loaded
from penstock.jobs import Lease
from penstock.lookup import created, image_result, recorded, video_row
from penstock.providers.spec import Model
from penstock.schema import Answer, Call, Choice, Input, Plan, Request, Settled
from penstock.store.base import ConstraintViolated, Row, Transaction
from penstock.validate import Wish
from penstock.values import Nanos

# -------------------------------------------------------------------------------------------------------------- images


async def make_images(gateway: Gateway, call: Call) -> Answer:
    """Images are made while the caller waits."""
    wish = validate.image(call, gateway.settings)
    return await _images(gateway, call, wish, ("image",))


async def edit_images(gateway: Gateway, call: Call) -> Answer:
    """The model decides whether this is an edit, which needs a prompt, or an upscale, which does not."""
    wish = validate.edit(call, gateway.settings)
    return await _images(gateway, call, wish, ("edit", "upscale"))


async def _images(gateway: Gateway, call: Call, wish: Wish, tasks: Sequence[str]) -> Answer:
    route, request, pictures = await _understood(gateway, call, wish, tasks)
    if call.dry_run:
        return respond.estimate(request.model, route.first.provider.slug, billing.quote(route.first.model, request))
    row, lease = await _accept(gateway, call, wish, request, route, pictures)
    assert lease is not None, "images carry no idempotency key"
    gateway.jobs.start(lease)
    if "respond-async" in call.headers.get("prefer", ""):
        return Answer(status=202, json=respond.image_status(row), headers=respond.poll_headers(row))
    if not await gateway.jobs.wait(call.id, gateway.settings.image_wait_seconds):
        raise recorded(
            UpstreamTimeout(
                f"The image is not finished yet; it will be found under /compat/v1/images/{call.id}.",
                should_retry=False,
            )
        )
    if lease.problem:
        raise recorded(lease.problem)
    return await image_result(gateway, call, [one.data for one in lease.files])


# -------------------------------------------------------------------------------------------------------------- videos


async def start_video(gateway: Gateway, call: Call) -> Answer:
    """Videos are promised now and made later; see `drive`."""
    wish = validate.video(call, gateway.settings)
    if wish.idempotency_key and not call.dry_run:
        earlier = await gateway.store.one(
            "get_generation_by_key", org_id=call.caller.org_id, idempotency_key=wish.idempotency_key
        )
        if earlier:
            return _replayed(gateway, call, earlier)
    route, request, pictures = await _understood(gateway, call, wish, ("video",))
    if call.dry_run:
        return respond.estimate(request.model, route.first.provider.slug, billing.quote(route.first.model, request))
    row, lease = await _accept(gateway, call, wish, request, route, pictures)
    if lease is None:
        return _replayed(gateway, call, row)
    if gateway.settings.worker:
        gateway.jobs.start(lease)
    return Answer(status=202, json=created(gateway, row), headers=respond.poll_headers(row))


def _replayed(gateway: Gateway, call: Call, row: Row) -> Answer:
    headers = {"idempotent-replayed": "true"}
    if row["body_digest"] != _digest(call):
        headers["idempotency-mismatch"] = "true"
    return Answer(status=202, json=created(gateway, row), headers=headers)


async def cancel_video(gateway: Gateway, call: Call) -> Answer:
    """Best effort: at once while nobody was asked to make it, by asking the provider afterwards."""
    row = await video_row(gateway, call)
    problem = Cancelled("The generation was cancelled.")
    now = gateway.clock.now_ms()

    async def write(tx: Transaction) -> None:
        asked = await tx.one("ask_cancel", id=row["id"], org_id=call.caller.org_id)
        sent = await tx.one("count_sent_attempts", request_id=row["id"])
        if asked is None or sent is None or sent["count"]:
            return
        taken = await tx.one("take_for_cancel", id=row["id"])
        if taken is None:
            return
        await tx.run(
            "fail_generation",
            id=row["id"],
            lease_token=taken["lease_token"],
            error_code=problem.code,
            error_message=problem.message,
        )
        await settle_failure(gateway, tx, asked, problem, "cancelled", now)

    await gateway.store.write(write)
    gateway.jobs.nudge(row["id"])
    gateway.deliveries.wake()
    return Answer(status=204)


# --------------------------------------------------------------------------------------------------------------- purge


async def purge(gateway: Gateway, call: Call) -> Answer:
    """Forget what a request said and made; keep that it was made, when and for how much."""
    request_id, org_id = call.path["request_id"], call.caller.org_id
    record = await gateway.store.one("get_request", id=request_id, org_id=org_id)
    if record is None:
        raise NotFound(f"No such request: {request_id}.")
    if record["status"] in ledger.OPEN:
        raise Conflict("This request is still under way; purge it when it has ended.", should_retry=False)
    if record["purged_at_ms"] is not None:
        return Answer(json={"id": request_id, "purged": True, "already_purged": True, "media_deleted": 0})
    files = await gateway.store.all("list_media", request_id=request_id, org_id=org_id)
    deleted = await gateway.media.forget(files)
    failpoint("purge.files_gone")
    row = await gateway.store.one("get_generation", id=request_id, org_id=org_id)

    async def write(tx: Transaction) -> None:
        await tx.run("purge_payload", request_id=request_id, org_id=org_id)
        await tx.run("purge_attempts", request_id=request_id, org_id=org_id)
        if row:
            await tx.run("purge_generation", id=request_id, org_id=org_id, settled=_bare(row["settled"]))
        await tx.run("mark_purged", id=request_id, org_id=org_id, at_ms=gateway.clock.now_ms())

    await gateway.store.write(write)
    await gateway.store.purge_traces()
    return Answer(json={"id": request_id, "purged": True, "already_purged": False, "media_deleted": deleted})


def _bare(settled: bytes | None) -> bytes | None:
    """Who made it and for how much, without files and words."""
    if settled is None:
        return None
    known = msgspec.json.decode(settled, type=Settled)
    return msgspec.json.encode(msgspec.structs.replace(known, files=(), tried=()))


# --------------------------------------------------------------------------------------------- what they have in common


async def _understood(
    gateway: Gateway, call: Call, wish: Wish, tasks: Sequence[str]
) -> tuple[Route, Request, list[Loaded]]:
    """Route and request checked against each other, and the caller's pictures loaded: all that can be refused is."""
    route = gateway.catalog.route(wish.request.model, tasks, gateway.health.well)
    task = route.first.model.op.task
    request = translate.with_defaults(msgspec.structs.replace(wish.request, task=task), route.first.model)
    counts = _counts([picture.role for picture in wish.pictures])

    def check(model: Model, wanted: Request) -> None:
        translate.check(model, wanted)
        translate.check_inputs(model, counts)

    route = catalog.able(route, request, check)
    if task == "edit" and not request.values.get("prompt"):
        raise InvalidRequest("`prompt` is required, except by upscale models.", param="prompt")
    pictures = [await gateway.gather.load(one.role, one.source, one.param) for one in wish.pictures]
    _check_mask(pictures)
    inputs = tuple(Input(one.role, "", one.content_type, one.width, one.height, len(one.data)) for one in pictures)
    return route, msgspec.structs.replace(request, inputs=inputs), pictures


def _counts(roles: Sequence[str]) -> dict[str, int]:
    names = {"image": "images", "mask": "mask", "reference": "input_reference"}
    return {names[role]: roles.count(role) for role in set(roles)}


def _check_mask(pictures: Sequence[Loaded]) -> None:
    mask = next((one for one in pictures if one.role == "mask"), None)
    source = next((one for one in pictures if one.role == "image"), None)
    if mask and source and (mask.width, mask.height) != (source.width, source.height):
        raise InvalidRequest(
            f"`mask` must have the image's dimensions, {source.width}x{source.height}; "
            f"it has {mask.width}x{mask.height}.",
            param="mask",
        )


async def _accept(
    gateway: Gateway, call: Call, wish: Wish, request: Request, route: Route, pictures: Sequence[Loaded]
) -> tuple[Row, Lease | None]:
    """The promise: record, hold, idempotency key, job and pictures in one transaction. No lease: promised before."""
    failpoint("accept.before_tx")
    caller, clock = call.caller, gateway.clock
    stored = await gateway.gather.store_inputs(pictures, call.at_ms)
    request = msgspec.structs.replace(request, inputs=tuple(one for one, _ in stored))
    choices = tuple(
        Choice(
            provider=option.provider.slug,
            model=option.model.id,
            upstream=option.model.upstream,
            prices=billing.freeze(option.model.prices),
            hold=billing.quote(option.model, request).total,
        )
        for option in route.options
    )
    hold = Nanos(max(choice.hold for choice in choices))
    deadline_ms = clock.now_ms() + int(gateway.settings.job_deadline_seconds * 1000)
    mine = gateway.settings.worker or request.task != "video"

    async def write(tx: Transaction) -> Row:
        if wish.idempotency_key:
            earlier = await tx.one("get_generation_by_key", org_id=caller.org_id, idempotency_key=wish.idempotency_key)
            if earlier:
                return earlier
        if caller.is_limited:
            await limits.check(tx, caller, hold, clock.now_ms())
        reserved = gateway.settling.reserved(caller.org_id)
        await billing.hold(tx, caller.org_id, call.id, hold, call.at_ms, reserved=reserved)
        await ledger.begin(tx, call, request, hold)
        await tx.run(
            "add_generation",
            id=call.id,
            org_id=caller.org_id,
            task=request.task,
            model=request.model,
            request=msgspec.json.encode(request),
            plan=msgspec.json.encode(Plan(choices, route.forced)),
            hold=hold,
            created_at_ms=call.at_ms,
            deadline_ms=deadline_ms,
            retention_seconds=wish.retention_seconds,
            webhook_url=wish.webhook_url,
            idempotency_key=wish.idempotency_key,
            body_digest=_digest(call) if wish.idempotency_key else None,
            lease_token=1,
            lease_until_ms=gateway.jobs.lease_until_ms if mine else 0,
            starts=1 if mine else 0,
        )
        await gateway.media.record_inputs(tx, caller.org_id, call.id, stored, deadline_ms + 3_600_000)
        failpoint("accept.in_tx")
        row = await tx.one("get_generation", id=call.id, org_id=caller.org_id)
        assert row is not None, "it was written a moment ago"
        return row

    with gateway.settling.leaving(caller.org_id, hold):
        try:
            row = await gateway.store.write(write)
        except ConstraintViolated:  # two processes, one key: the other was first
            if not wish.idempotency_key:
                raise
            row = await gateway.store.write(write)
    failpoint("accept.after_commit")
    return row, Lease(call.id, 1, 1) if row["id"] == call.id else None


def _digest(call: Call) -> bytes:
    """Tells whether a repeated call says the same; a form's boundary is new each time, its parts are not."""
    if not call.is_form:
        return hashlib.sha256(call.body).digest()
    parts = [(name, value if isinstance(value, str) else value.data) for name, value in call.form]
    return hashlib.sha256(msgspec.msgpack.encode(parts)).digest()
