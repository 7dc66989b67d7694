"""A model of organizations that chat, make images and videos, cancel, record, import, replay, purge and add credit, at
the same time and with a provider that fails. After every step the balance, the request records, the invoice of the
provider and the audit must agree.

`make test` plays a few organizations on each database. `--organizations 500` plays more of them, and `--steps 30` lets
each do more.
"""

import asyncio
import itertools
import traceback
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from penstock.accounts.chat_settlement import ChatSettlement
from penstock.accounts.orgs import create_org
from penstock.chat.endpoint import complete_chat
from penstock.errors import InsufficientBalance, Problem, StorageUnavailable
from penstock.gateway import Gateway
from penstock.generations import endpoints
from penstock.generations.cancel import cancel_video
from penstock.generations.purge import purge
from penstock.media.storage import Folder
from penstock.recordings import files
from penstock.schema import Call, Caller, Response
from penstock.values import Nanos, OrgId, nanos
from tests.conftest import checking_loop
from tests.fake_providers import faults
from tests.fake_providers.chat import INPUT_USD, OUTPUT_USD
from tests.fake_providers.exchange import ReceivedRequest
from tests.fake_providers.scripted import IMAGE_USD, SECOND_USD
from tests.fake_providers.server import Act, FakeCall
from tests.gateway import ENDED, OpenGateway, RunningGateway, exported

T = TypeVar("T")

# What the provider does with a call: the first word of its prompt says which.
CHAT_ACTS: Mapping[str, Act] = {
    "ok": faults.ok,
    "busy": faults.busy(1),
    "broken": faults.broken,
    "dropped": faults.dropped,
    "nonsense": faults.nonsense,
    "stalled": faults.stalled,
}
STREAM_ACTS: Mapping[str, Act] = {**CHAT_ACTS, "nonsense": faults.cut_stream(2)}
IMAGE_ACTS: Mapping[str, Act] = {
    "ok": faults.ok,
    "busy": faults.busy(1),
    "broken": faults.broken,
    "dropped": faults.dropped,
    "nonsense": faults.nonsense,
    "blocked": faults.blocked,
}
VIDEO_ACTS: Mapping[str, Act] = {
    "ok": faults.ok,
    "slow": faults.video_states("queued", "in_progress 10", "in_progress 50", "in_progress 90", "completed"),
    "busy": faults.busy(1),
    "broken": faults.broken,
    "dropped": faults.dropped,
    "fails": faults.fails,
    "refused": faults.is_refused,
}
SUCCEEDS = ("ok", "slow")
FRAMING_EVENTS = 2  # of a streamed chat beside one for each word: the first and the last
REPLAY = "x-service-replay"
CHECKS = 300  # until writes that are under way are complete; usually a few are enough
PAUSE_READS = 5  # between a change of a file and the change of its row
DEADLINE_SECONDS = 3600  # until then a video is tried again while its provider is busy

# -------------------------------------------------------------------------------------------------------------- actions


@dataclass(frozen=True)
class Chat:
    act: str
    words: int
    stream: bool
    leaves: bool  # the caller disconnects: during the stream, or while the provider is silent


@dataclass(frozen=True)
class MakeImage:
    act: str
    count: int
    replay: str | None


@dataclass(frozen=True)
class MakeVideo:
    act: str
    seconds: int
    replay: str | None


@dataclass(frozen=True)
class CancelVideo:
    number: int


@dataclass(frozen=True)
class Purge:
    number: int


@dataclass(frozen=True)
class ImportRecording:
    number: int


@dataclass(frozen=True)
class AddCredit:
    cents: int


Action = Chat | MakeImage | MakeVideo | CancelVideo | Purge | ImportRecording | AddCredit

_NUMBERS = st.integers(0, 9)
_REPLAYS = st.sampled_from([None, None, "record", "replay-or-record", "replay-or-error"])
_CHATS = st.builds(Chat, st.sampled_from(sorted(CHAT_ACTS)), st.integers(1, 6), st.booleans(), st.booleans())
_IMAGES = st.builds(MakeImage, st.sampled_from(sorted(IMAGE_ACTS)), st.integers(1, 3), _REPLAYS)
_VIDEOS = st.builds(MakeVideo, st.sampled_from(sorted(VIDEO_ACTS)), st.sampled_from([4, 8]), _REPLAYS)
_OTHERS = st.one_of(
    st.builds(CancelVideo, _NUMBERS),
    st.builds(Purge, _NUMBERS),
    st.builds(ImportRecording, _NUMBERS),
    st.builds(AddCredit, st.integers(1, 100)),
)
ACTIONS = st.one_of(_CHATS, _IMAGES, _VIDEOS, _OTHERS)


@dataclass
class Made:
    """A call that the organization made, and what the caller saw of it."""

    id: str
    action: Chat | MakeImage | MakeVideo
    prompt: str
    response: Response | None = None
    problem: Problem | None = None
    left: bool = False  # the caller disconnected
    cancelled: bool = False  # somebody asked to cancel it
    purged: bool = False

    @property
    def is_recorded(self) -> bool:
        return self.problem is None or self.problem.recorded

    @property
    def price(self) -> Nanos:
        """The cost of an image or a video that is made."""
        assert not isinstance(self.action, Chat)
        if isinstance(self.action, MakeImage):
            return nanos(str(IMAGE_USD * self.action.count))
        return nanos(str(SECOND_USD * self.action.seconds))

    def statuses(self, is_sent: bool, is_late: bool) -> tuple[str, ...]:
        """How the request may end, whether it was sent to the provider or replayed; `is_late` if its deadline passed.

        A replay that waits for the recording of another call is sent itself if that one fails. A video that waits for
        one that is tried until its deadline may reach its own: while it waits, or soon after it was sent.
        """
        if self.left:
            return ("cancelled", "completed") if self.action.act == "ok" else ("cancelled", "upstream_failure")
        end = "completed" if not is_sent or self.action.act in SUCCEEDS else "upstream_failure"
        waits = isinstance(self.action, MakeVideo) and self.action.replay == "replay-or-record"
        ends = [end, "upstream_failure"] if waits and (is_late or not is_sent) else [end]
        return (*ends, "cancelled") if self.cancelled else tuple(ends)


# ---------------------------------------------------------------------------------------------------------------- world


@dataclass
class World:
    """A gateway that outlives the organizations, and the event loop that it runs in between the steps of Hypothesis."""

    runner: asyncio.Runner
    running: RunningGateway
    closing: asyncio.Event
    host: asyncio.Task[None]
    serial: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)


async def open_world(runner: asyncio.Runner, open_gateway: OpenGateway) -> World:
    opened: asyncio.Future[RunningGateway] = asyncio.get_running_loop().create_future()
    closing = asyncio.Event()

    async def hold_open() -> None:
        """Open and close the gateway in one task; each step of Hypothesis is another one."""
        async with open_gateway(job_deadline_seconds=DEADLINE_SECONDS) as running:
            opened.set_result(running)
            await closing.wait()

    host = asyncio.create_task(hold_open())
    host.add_done_callback(lambda _: opened.cancel())  # it could not be opened; closing it raises why
    running = await opened
    running.lab.chats.always(_act_by_prompt)
    running.lab.images.always(_act_by_prompt)
    running.lab.videos.always(_act_by_prompt)
    return World(runner, running, closing, host)


async def close_world(world: World) -> None:
    world.closing.set()
    await world.host


async def _act_by_prompt(call: FakeCall) -> None:
    fields = call.request.fields
    if "messages" in fields:
        acts = STREAM_ACTS if fields.get("stream") else CHAT_ACTS
    else:
        acts = VIDEO_ACTS if call.request.path.endswith("/videos") else IMAGE_ACTS
    await acts[_prompt(call.request).split()[0]](call)


def _prompt(request: ReceivedRequest) -> str:
    messages = request.fields.get("messages")
    return str(messages[-1]["content"] if messages else request.fields["prompt"])


# ---------------------------------------------------------------------------------------------------------------- model


class Organization(RuleBasedStateMachine):
    """One organization; what it did, and what must be true of its money."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.running = self.world.running
        self.made: list[Made] = []
        self.credit = Nanos(0)
        self.is_broken = False  # a step has failed
        self.caller: Caller = self.world.run(self._found())

    async def _found(self) -> Caller:
        self.running.clock.advance(3600)  # what happened to others no longer counts against the provider
        org = await create_org(self.running.gateway.store, self.running.clock, "Model", "prepaid")
        caller = await self.running.create_caller(org.id)
        await self._add_credit(100, org.id)
        return caller

    async def _add_credit(self, cents: int, org_id: OrgId) -> None:
        usd = str(Decimal(cents) / 100)
        await self.running.add_credit(usd, org_id)
        self.credit = Nanos(self.credit + nanos(usd))

    # ----------------------------------------------------------------------------------------------------------- rules

    @initialize()
    def succeed_with_each_kind(self) -> None:
        self.act_at_once([Chat("ok", 3, False, False), MakeImage("ok", 1, "record"), MakeVideo("ok", 4, "record")])

    @rule(actions=st.lists(ACTIONS, min_size=1, max_size=6))
    def act_at_once(self, actions: list[Action]) -> None:
        self._run(self._act_at_once(actions))

    @rule(seconds=st.sampled_from([1, 5, 30]))
    def wait(self, seconds: int) -> None:
        self._run(self._wait(seconds))

    @invariant()
    def everything_agrees(self) -> None:
        self._run(self._check())

    def teardown(self) -> None:
        if not self.is_broken:  # or the first failure would be hidden by another one
            self._run(self._finish())

    def _run(self, step: Coroutine[Any, Any, None]) -> None:
        try:
            self.world.run(step)
        except BaseException:
            self.is_broken = True
            traceback.print_exc()  # Hypothesis plays it again, and may report only that it went otherwise
            raise

    async def _wait(self, seconds: int) -> None:
        for _ in range(seconds):
            await self._write()
            self.running.clock.advance(1)

    async def _wait_until(self, met: Callable[[], Awaitable[bool]], step_seconds: float) -> None:
        async def met_after_a_write() -> bool:
            await self._write()
            return await met()

        await self.running.wait_until(met_after_a_write, step_seconds, seconds=600)

    async def _write(self) -> None:
        """Write, so that the clock moves no faster than the database works, however busy the machine is."""
        await self.running.gateway.store.write(lambda tx: tx.run("set_fact", name="step", value=""))

    async def _act_at_once(self, actions: list[Action]) -> None:
        available, _ = await self.running.money(self.caller.org_id)
        before = len(self.made)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._act(action)) for action in actions]

            async def met() -> bool:
                return all(task.done() for task in tasks)

            await self._wait_until(met, 0.05)
        for made in self.made[before:]:
            if isinstance(made.problem, InsufficientBalance) and not isinstance(made.action, Chat):
                assert len(actions) > 1 or available < made.price, "refused although there was enough"

    async def _act(self, action: Action) -> None:
        if isinstance(action, Chat):
            await self._chat(action)
        elif isinstance(action, MakeImage | MakeVideo):
            await self._generate(action)
        elif isinstance(action, AddCredit):
            await self._add_credit(action.cents, self.caller.org_id)
        elif isinstance(action, CancelVideo):
            await self._cancel(action.number)
        elif isinstance(action, Purge):
            await self._purge(action.number)
        else:
            await self._import(action.number)

    # ----------------------------------------------------------------------------------------------------------- calls

    def _call(self, action: Chat | MakeImage | MakeVideo, endpoint: str, **body: Any) -> tuple[Made, Call]:
        prompt = " ".join([action.act, f"no-{next(self.world.serial)}"])
        if isinstance(action, Chat):
            prompt += " word" * action.words
            body["messages"] = [{"role": "user", "content": prompt}]
            headers = {}
        else:
            body["prompt"] = prompt
            headers = {REPLAY: action.replay} if action.replay else {}
        call = self.running.call(body, endpoint=endpoint, caller=self.caller, headers=headers)
        made = Made(call.id, action, prompt)
        self.made.append(made)
        return made, call

    async def _chat(self, action: Chat) -> None:
        made, call = self._call(
            action, "/compat/v1/chat/completions", model="lab/chat", max_tokens=20, stream=action.stream
        )
        chatting = asyncio.create_task(self._complete(made, call))
        if action.act == "stalled":  # nobody waits for ever
            await self._wait_until_received(made, chatting)
            made.left = not chatting.done()
            chatting.cancel()
        with suppress(asyncio.CancelledError):
            await chatting

    async def _complete(self, made: Made, call: Call) -> None:
        try:
            made.response = await complete_chat(self.running.gateway, call)
        except Problem as problem:
            made.problem = problem
            return
        if made.response.chunks is None:
            return
        assert isinstance(made.action, Chat)
        async for _ in made.response.chunks:
            if made.action.leaves:
                made.left = True
                break
        await made.response.chunks.aclose()  # type: ignore[attr-defined]

    async def _wait_until_received(self, made: Made, chatting: asyncio.Task[None]) -> None:
        async def met() -> bool:
            return made.prompt in map(_prompt, self.running.lab.chats.received) or chatting.done()

        await self.running.wait_until(met, 0)

    async def _generate(self, action: MakeImage | MakeVideo) -> None:
        if isinstance(action, MakeImage):
            path = "/compat/v1/images/generations"
            made, call = self._call(action, path, model="image-1", size="64x64", n=action.count)
            create = endpoints.make_images
        else:
            made, call = self._call(action, "/compat/v1/videos", model="video-1", seconds=action.seconds)
            create = endpoints.start_video
        try:
            made.response = await create(self.running.gateway, call)
        except Problem as problem:
            made.problem = problem

    async def _cancel(self, number: int) -> None:
        videos = [made for made in self.made if isinstance(made.action, MakeVideo) and made.response]
        if videos:
            made = videos[number % len(videos)]
            made.cancelled = True
            await cancel_video(self.running.gateway, self.running.call(id=made.id, caller=self.caller))

    async def _purge(self, number: int) -> None:
        recorded = [made for made in self.made if made.is_recorded and (made.response or made.problem)]
        if recorded:
            made = recorded[number % len(recorded)]
            call = self.running.call(caller=self.caller, request_id=made.id)
            with suppress(Problem):  # it has not ended, or is not written yet
                await _purge_until_available(self.running.gateway, call)
                made.purged = True

    async def _import(self, number: int) -> None:
        """Export a recording and import it again; another call may delete it meanwhile."""
        gateway = self.running.gateway
        recordings = await gateway.recordings.all(self.caller.org_id)
        if recordings:
            with suppress(Problem):
                row = await gateway.recordings.get(self.caller.org_id, recordings[number % len(recordings)].id)
                document = await exported(gateway.recordings, row)
                encoded = {**_as_json(document), "id": row.id, "duration_ms": next(self.world.serial)}
                await files.import_recording(
                    gateway.store,
                    gateway.recordings,
                    self.caller.org_id,
                    encoded,
                    {},
                    self.running.clock.now_ms(),
                    pool=gateway.worker_pool,
                )

    # ---------------------------------------------------------------------------------------------------------- checks

    async def _finish(self) -> None:
        """Let the videos end, check, purge everything, and check for the last time."""

        async def met() -> bool:
            return all(record["status"] in ENDED for record in (await self._records()).values())

        await self._wait_until(met, 5)
        await self._check()
        for number in range(len(self.made)):
            await self._purge(number)
        await self._check()

    async def _records(self) -> dict[str, dict[str, Any]]:
        rows = await self.running.gateway.store.all(
            "list_newer_requests", org_id=self.caller.org_id, low="req_", high="req_~", limit=10_000
        )
        return {row["id"]: dict(row) for row in rows}

    async def _check(self) -> None:
        """Everything agrees as soon as what has ended is written and what is being written is complete.

        Tries are counted instead of seconds, because on a busy machine one of them may take long.
        """
        breaches: list[str] = []
        for _ in range(CHECKS):
            breaches = [*await self._breaches(), *await self.running.run_audit()]
            if not breaches:
                return
            await asyncio.sleep(0.01)
            self.running.clock.advance(0.1)  # by which a write is tried again that found the database busy
        raise AssertionError("\n".join(breaches))

    async def _breaches(self) -> list[str]:
        records = await self._records()
        available, held = await self.running.money(self.caller.org_id)
        expected = {made.id for made in self.made if made.is_recorded}
        breaches = [f"{each}: not recorded" for each in expected - records.keys()]
        breaches += [f"{each}: recorded, but nobody knows of it" for each in records.keys() - expected]
        spent = sum(record["cost"] for record in records.values() if record["status"] in ENDED)
        open_holds = sum(record["hold"] for record in records.values() if record["status"] not in ENDED)
        if available + held != self.credit - spent:
            breaches.append(f"credit {self.credit}, spent {spent}, but {available} + {held} are left")
        if held != open_holds:
            breaches.append(f"{held} are held, for open requests with holds of {open_holds}")
        invoice = defaultdict[str, list[Nanos]](list)
        for charge in self.running.lab.invoice:
            invoice[charge.prompt].append(nanos(str(charge.usd)))
        lab = self.running.lab
        received = {_prompt(each) for each in (*lab.chats.received, *lab.images.received, *lab.videos.received)}
        for made in self.made:
            if made.id in records:
                is_sent = made.prompt in received
                breaches += _request_breaches(made, records[made.id], invoice[made.prompt], is_sent)
            if made.purged:
                breaches += await self._remains(made)
        return breaches

    async def _remains(self, made: Made) -> list[str]:
        """What is stored of a purged request although it must not be: its files, its recordings, its prompt."""
        store = self.running.gateway.store
        ids = {"request_id": made.id, "org_id": self.caller.org_id}
        files = await store.all("list_media", **ids) + await store.all("list_recordings_of_request", **ids)
        texts = [
            await store.one("get_generation", id=made.id, org_id=self.caller.org_id),
            await store.one("get_payload", **ids),
            *await store.all("list_attempts", request_id=made.id),
        ]
        is_left = files or any(made.prompt in str(row) for row in texts)
        return [f"{made.prompt}: purged, but there are {len(files)} files or recordings, or texts"] if is_left else []


def _request_breaches(made: Made, record: Mapping[str, Any], charges: list[Nanos], is_sent: bool) -> Iterator[str]:
    """What does not fit between a call, its record and what the provider charges for it."""
    status = record["status"]
    about = f"{made.prompt} is {status} for {record['cost']}, the provider charges {charges}"
    if len(charges) > 1:
        yield f"{about}: made twice"
    if status not in ENDED:
        if not isinstance(made.action, MakeVideo):
            yield f"{about}: not ended"
        return
    statuses = made.statuses(is_sent, record["error_code"] == "UPSTREAM_TIMEOUT")
    # Purging a request deletes its recordings, also under a replay that was accepted.
    if status not in statuses and (is_sent or record["error_code"] != "RECORDING_NOT_FOUND"):
        yield f"{about}: expected {statuses}, {record['error_code']}"
    if record["cost"] not in _costs(made, status, charges, is_sent):
        yield f"{about}: expected a cost of {_costs(made, status, charges, is_sent)}"


def _costs(made: Made, status: str, charges: list[Nanos], is_sent: bool) -> Container[int]:
    """What a request may cost that ended with this status."""
    if isinstance(made.action, Chat):
        # Who leaves a stream pays for what was sent by then: estimated, because the provider tells usage at the end.
        most = Decimal(len(made.prompt)) / 4 * INPUT_USD + (len(made.prompt.split()) + FRAMING_EVENTS) * OUTPUT_USD
        return charges if status == "completed" else range(nanos(str(most)) + 1 if charges else 1)
    if status == "completed" and is_sent:
        return [made.price] if charges == [made.price] else []
    return [0]


async def _purge_until_available(gateway: Gateway, call: Call) -> None:
    """Purge, again while the database is busy: files may be deleted by then, and their rows are not."""
    while True:
        try:
            await purge(gateway, call)
        except StorageUnavailable:
            await asyncio.sleep(0)
        else:
            return


def _as_json(document: files.RecordingFile) -> Any:
    return msgspec.json.decode(msgspec.json.encode(document))


def make_storage_unavailable_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every third batch of ended chats find the database busy; it is written again after a pause."""
    numbers = itertools.count(1)
    write_all = ChatSettlement._write_all

    async def write_or_fail(settlement: ChatSettlement, queue: Any) -> None:
        if next(numbers) % 3 == 0:
            raise StorageUnavailable("The database is in use.")
        await write_all(settlement, queue)

    monkeypatch.setattr(ChatSettlement, "_write_all", write_or_fail)


def let_others_act_between_files_and_rows(monkeypatch: pytest.MonkeyPatch, running: RunningGateway) -> None:
    """Have the database asked after each change of a file, so that others come between it and the change of its row."""
    for name in ("create", "replace", "copy", "delete"):
        change = getattr(Folder, name)

        async def change_and_wait(*arguments: Any, change: Callable[..., Awaitable[Any]] = change) -> Any:
            changed = await change(*arguments)
            for _ in range(PAUSE_READS):
                await running.gateway.store.one("get_fact", name="step")
            return changed

        monkeypatch.setattr(Folder, name, change_and_wait)


@pytest.mark.timeout(0)
def test_money_records_invoice_and_audit_agree_at_every_step(
    open_gateway: OpenGateway, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_storage_unavailable_now_and_then(monkeypatch)
    organizations: int = request.config.getoption("--organizations")
    steps: int = request.config.getoption("--steps")
    settings = hypothesis.settings(
        max_examples=organizations,
        stateful_step_count=steps,
        deadline=None,
        derandomize=organizations <= 5,
        phases=[phase for phase in hypothesis.Phase if organizations > 5 or phase is not hypothesis.Phase.shrink],
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=True,
    )
    with asyncio.Runner(loop_factory=checking_loop) as runner:
        world = runner.run(open_world(runner, open_gateway))
        let_others_act_between_files_and_rows(monkeypatch, world.running)
        machine = type("OrganizationInWorld", (Organization,), {"world": world})
        try:
            run_state_machine_as_test(machine, settings=settings)
        finally:
            runner.run(close_world(world))
