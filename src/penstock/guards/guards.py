"""Ask all guards of a call at once; the strictest verdict decides."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import structlog

from penstock.clock import Clock
from penstock.errors import CallRefused, OutputRefused, Unavailable
from penstock.guards import verdicts as services
from penstock.guards.configured import Guard, read_guards
from penstock.guards.rules import CompiledRules
from penstock.guards.verdict_counts import VerdictCounts
from penstock.guards.verdicts import Asked, GuardFailed, Verdict
from penstock.net.client import HttpClient
from penstock.settings import Settings
from penstock.telemetry.call_report import report_guards
from penstock.telemetry.metrics import Metrics
from penstock.values import InputFile, OrgId
from penstock.webhooks.events import RecentSigners, WebhookSecrets

# Asks a chat model. Raises GuardFailed.
AsksModel = Callable[[Guard, Asked, Mapping[str, Any]], Awaitable[Verdict]]
Step = Callable[[], Awaitable[None]]
log = structlog.get_logger()
WAITING_CALLER_SECONDS = 30.0  # how long guards of outputs are asked again while a caller waits
_PAUSE_SECONDS = 1.0
_PAUSE_SECONDS_MAX = 60.0
_PASS = Verdict("pass")


async def _nothing() -> None:
    pass


class Guards:
    """The operator's guards, in the order of penstock.toml."""

    def __init__(
        self,
        settings: Settings,
        client: HttpClient,
        secrets: WebhookSecrets,
        clock: Clock,
        metrics: Metrics,
        counts: VerdictCounts,
    ) -> None:
        self.configured = read_guards(settings.guards)
        self.counts = counts
        self._rules = {guard.name: CompiledRules(guard.rules) for guard in self.configured if guard.rules}
        self._client = client
        self._signers = RecentSigners(secrets, clock)
        self._clock = clock
        self._metrics = metrics
        self.ask_model: AsksModel | None = None  # set when there is a gateway to ask

    def watching(
        self, kind: str, org_id: OrgId, when: Literal["input", "output"] = "input", call_id: str = ""
    ) -> list[Guard]:
        """The guards of calls, or of what is made for them; with an id those that are asked about this call."""
        guards = [guard for guard in self.configured if guard.watches(kind, org_id, when)]
        return [guard for guard in guards if guard.is_asked_about(call_id)] if call_id else guards

    def reading(self, kind: str, org_id: OrgId, *, is_stream: bool, call_id: str = "") -> list[Guard]:
        """The guards that read what is written for calls before their callers do, as `watching`."""
        guards = self.watching(kind, org_id, "output", call_id)
        return [guard for guard in guards if guard.buffer_stream or not is_stream]

    # ----------------------------------------------------------------------------------------------------- calls

    async def check(
        self,
        asked: Asked,
        kind: str,
        model: str,
        prompt: str,
        *,
        inputs: Sequence[InputFile] = (),
        has_images: bool = False,
        labels: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        """Return if the call may go on, and note for its response whether a guard has flagged it.

        Raises CallRefused if a guard refuses it, and Unavailable if one that must answer does not.
        """
        guards = self.watching(kind, asked.org_id, call_id=asked.call_id)
        if not guards:
            return
        question = services.describe(kind, model, prompt, dict(labels or {}), user)
        has_images = has_images or bool(inputs)

        async def ask(guard: Guard) -> Verdict:
            if guard.rules:
                return self._by_rules(guard, asked, model, prompt, "prompt", has_images=has_images)
            asks = guard.http or guard.model
            images = {"images": services.encoded_images(inputs)} if asks and asks.sends_images else {}
            return await self._by_asking(guard, asked, {**question, **images})

        try:
            verdicts = await asyncio.gather(*map(ask, guards))
        except GuardFailed as problem:
            raise Unavailable(f"The {str(problem).removeprefix('the ')}.") from None
        for guard, verdict in zip(guards, verdicts, strict=True):
            if verdict.verdict == "refuse":
                raise CallRefused(
                    f"The guard `{guard.name}` of this gateway refused the call{_reason(guard, verdict)}."
                )
        _report(verdicts)

    # --------------------------------------------------------------------------------------------------- outputs

    async def check_text(self, guards: Sequence[Guard], asked: Asked, question: Mapping[str, Any], text: str) -> None:
        """Return if what was written for a call may be shown to its caller, who waits.

        Raises OutputRefused if a guard refuses it, and Unavailable if one that must answer does not.
        """
        passed: set[str] = set()
        shown = {**question, **services.describe_text(text)}

        async def ask() -> None:
            await self.judge_output(guards, asked, shown, passed, text=text)

        await self.insist(ask, self._clock.steady_ms() + WAITING_CALLER_SECONDS * 1000)

    async def insist(
        self,
        ask: Callable[[], Awaitable[None]],
        until_ms: float,
        before_pause: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        """Ask about what was made until every guard has answered that must, with growing pauses. Raises Unavailable
        when the time is over, and what `ask` raises.
        """
        pause = _PAUSE_SECONDS
        while True:
            try:
                return await ask()
            except GuardFailed as problem:
                if self._clock.steady_ms() + pause * 1000 >= until_ms:
                    message = f"The output was made, but {problem}; nothing is charged."
                    raise Unavailable(message, should_retry=False) from None
                await before_pause()
                await self._clock.sleep(pause)
                pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    async def judge_output(
        self,
        guards: Sequence[Guard],
        asked: Asked,
        question: Mapping[str, Any],
        passed: set[str],
        *,
        text: str = "",
    ) -> None:
        """Ask those guards about an output that have not let it pass, and note which do.

        Raises OutputRefused if one refuses it, and GuardFailed if one must be asked again.
        """
        left = [guard for guard in guards if guard.name not in passed]

        async def ask(guard: Guard) -> Verdict:
            if guard.rules:
                return self._by_rules(guard, asked, question["model"], text, "output")
            return await self._by_asking(guard, asked, question)

        answers = await asyncio.gather(*map(ask, left), return_exceptions=True)
        verdicts = [answer for answer in answers if isinstance(answer, Verdict)]
        for guard, answer in zip(left, answers, strict=True):
            if isinstance(answer, Verdict) and answer.verdict == "refuse":
                raise refused_output(guard, answer)
            if isinstance(answer, Verdict):
                passed.add(guard.name)
        _report(verdicts)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    # -------------------------------------------------------------------------------------------------- verdicts

    def _by_rules(
        self, guard: Guard, asked: Asked, model: str, text: str, what: str, *, has_images: bool = False
    ) -> Verdict:
        reason = self._rules[guard.name].reason(model, text, what=what, has_images=has_images)
        return self._counted(guard, asked, _PASS if reason is None else Verdict("refuse", reason))

    async def _by_asking(self, guard: Guard, asked: Asked, question: Mapping[str, Any]) -> Verdict:
        """What a service or a model says. Raises GuardFailed if it says nothing and must answer."""
        try:
            found = await self._answer(guard, asked, question)
        except GuardFailed as problem:
            log.warning("guard failed", guard=guard.name, reason=str(problem), request_id=asked.call_id)
            self._count(guard, asked, "error")
            if guard.on_error == "open":
                return _PASS
            raise GuardFailed(f"the guard `{guard.name}` of this gateway does not answer") from None
        return self._counted(guard, asked, found)

    async def _answer(self, guard: Guard, asked: Asked, question: Mapping[str, Any]) -> Verdict:
        if guard.http is not None:
            whole = {"id": asked.call_id, "guard": guard.name, **question}
            return await services.ask(self._client, self._signers, self._clock, guard.http, whole, asked.call_id)
        assert self.ask_model is not None, "the gateway is built"
        return await self.ask_model(guard, asked, question)

    def _counted(self, guard: Guard, asked: Asked, found: Verdict) -> Verdict:
        """The verdict as the guard wants it, counted."""
        is_softened = found.verdict == "refuse" and guard.on_hit == "flag"
        verdict = Verdict("flag", found.reason) if is_softened else found
        self._count(guard, asked, verdict.verdict)
        if verdict.verdict != "pass":
            log.info("guard", guard=guard.name, verdict=verdict.verdict, request_id=asked.call_id)
        return verdict

    def _count(self, guard: Guard, asked: Asked, verdict: str) -> None:
        self._metrics.count_verdict(guard.name, verdict)
        self.counts.add(asked.org_id, guard.name, verdict)


def refused_output(guard: Guard, verdict: Verdict) -> OutputRefused:
    """What a caller is told of an output that a guard refused."""
    charge = "it was made, and what it cost is charged" if guard.charge_refused else "nothing is charged"
    message = f"The guard `{guard.name}` of this gateway refused the output{_reason(guard, verdict)}; {charge}."
    return OutputRefused(message, is_charged=guard.charge_refused)


def _reason(guard: Guard, verdict: Verdict) -> str:
    return f": {verdict.reason}" if guard.show_reason and verdict.reason else ""


def _report(verdicts: Sequence[Verdict]) -> None:
    """Note what guards said for the header of the response."""
    report_guards("flag" if any(verdict.verdict == "flag" for verdict in verdicts) else "pass")
