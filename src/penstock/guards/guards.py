"""Ask all guards of a call at once; the strictest verdict decides."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import structlog

from penstock.clock import Clock
from penstock.errors import ContentPolicyViolation, Unavailable
from penstock.guards import verdicts as services
from penstock.guards.configured import Guard, Service, read_guards
from penstock.guards.rules import CompiledRules
from penstock.guards.verdicts import GuardFailed, Verdict
from penstock.net.client import HttpClient
from penstock.settings import Settings
from penstock.telemetry.call_report import report_guards
from penstock.telemetry.metrics import Metrics
from penstock.values import InputFile, OrgId
from penstock.webhooks.events import RecentSigners, WebhookSecrets

log = structlog.get_logger()
_PASS = Verdict("pass")


class Guards:
    """The operator's guards, in the order of penstock.toml."""

    def __init__(
        self, settings: Settings, client: HttpClient, secrets: WebhookSecrets, clock: Clock, metrics: Metrics
    ) -> None:
        self._guards = read_guards(settings.guards)
        self._rules = {guard.name: CompiledRules(guard.rules) for guard in self._guards if guard.rules}
        self._client = client
        self._signers = RecentSigners(secrets, clock)
        self._clock = clock
        self._metrics = metrics

    def watching(self, kind: str, org_id: OrgId, when: Literal["input", "output"] = "input") -> list[Guard]:
        """The guards of a call, or of what is made for it."""
        return [guard for guard in self._guards if guard.watches(kind, org_id, when)]

    async def judge_output(self, guard: Guard, call_id: str, question: dict[str, Any]) -> Verdict:
        """What a guard says about an output. Raises GuardFailed if it says nothing and must answer."""
        assert guard.http is not None, "guards of outputs are services"
        whole = {"id": call_id, "guard": guard.name, **question}
        try:
            found = await services.ask(self._client, self._signers, self._clock, guard.http, whole, call_id)
        except GuardFailed as problem:
            log.warning("guard failed", guard=guard.name, reason=str(problem), request_id=call_id)
            if guard.on_error == "open":
                return _PASS
            self._metrics.count_verdict(guard.name, "error")
            raise GuardFailed(f"the guard `{guard.name}` of this gateway does not answer") from None
        if found.verdict == "refuse" and guard.on_hit == "flag":
            found = Verdict("flag", found.reason)
        self._metrics.count_verdict(guard.name, found.verdict)
        if found.verdict != "pass":
            log.info("guard", guard=guard.name, verdict=found.verdict, request_id=call_id)
        return found

    async def check(
        self,
        call_id: str,
        org_id: OrgId,
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

        Raises ContentPolicyViolation if a guard refuses it, and Unavailable if one that must answer does not.
        """
        guards = self.watching(kind, org_id)
        if not guards:
            return
        question = services.describe(kind, model, prompt, dict(labels or {}), user)
        has_images = has_images or bool(inputs)
        verdicts = await asyncio.gather(
            *(self._verdict(guard, call_id, question, prompt, inputs, has_images) for guard in guards)
        )
        for guard, verdict in zip(guards, verdicts, strict=True):
            self._metrics.count_verdict(guard.name, verdict.verdict)
            if verdict.verdict != "pass":
                log.info("guard", guard=guard.name, verdict=verdict.verdict, request_id=call_id)
        for guard, verdict in zip(guards, verdicts, strict=True):
            if verdict.verdict == "refuse":
                reason = f": {verdict.reason}" if guard.show_reason and verdict.reason else ""
                raise ContentPolicyViolation(f"The guard `{guard.name}` of this gateway refused the call{reason}.")
        is_flagged = any(verdict.verdict == "flag" for verdict in verdicts)
        report_guards("flag" if is_flagged else "pass")

    async def _verdict(
        self,
        guard: Guard,
        call_id: str,
        question: dict[str, Any],
        prompt: str,
        inputs: Sequence[InputFile],
        has_images: bool,
    ) -> Verdict:
        if guard.http is None:
            reason = self._rules[guard.name].reason(question["model"], prompt, has_images=has_images)
            return _PASS if reason is None else Verdict(guard.on_hit, reason)
        try:
            found = await self._ask(guard.http, guard.name, call_id, question, inputs)
        except GuardFailed as problem:
            log.warning("guard failed", guard=guard.name, reason=str(problem), request_id=call_id)
            if guard.on_error == "open":
                return _PASS
            self._metrics.count_verdict(guard.name, "error")
            raise Unavailable(f"The guard `{guard.name}` of this gateway does not answer.") from None
        return Verdict("flag", found.reason) if found.verdict == "refuse" and guard.on_hit == "flag" else found

    async def _ask(
        self, asked: Service, name: str, call_id: str, question: dict[str, Any], inputs: Sequence[InputFile]
    ) -> Verdict:
        whole = {"id": call_id, "guard": name, **question}
        if asked.sends_images:
            whole["images"] = services.encoded_images(inputs)
        return await services.ask(self._client, self._signers, self._clock, asked, whole, call_id)
