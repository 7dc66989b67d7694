"""The parts of a generation, each made by an attempt: what is to be made, and what became of it so far."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from penstock.accounts.prices import Line
from penstock.generation_jobs.rows import AttemptRow
from penstock.providers.spec import Result
from penstock.schema import StoredOutput
from penstock.upstream.candidate import Candidate
from penstock.upstream.failures import Failure
from penstock.values import ZERO, Nanos

PartKey = tuple[int, int]  # which candidate of the plan, and which part of what it makes


class Part(msgspec.Struct, frozen=True):
    """The outputs that one attempt is to make: `count` of them, from number `first` of the request, counted from 0;
    part `index` of what the candidate makes.
    """

    candidate: Candidate
    candidate_index: int
    index: int
    count: int
    first: int = 0

    @property
    def key(self) -> PartKey:
        return self.candidate_index, self.index

    def divided(self, count_max: int) -> list["Part"]:
        """The part as several parts of so many outputs at most."""
        parts: list[Part] = []
        index, first = self.index, self.first
        for count in part_sizes(self.count, count_max):
            parts.append(msgspec.structs.replace(self, index=index, count=count, first=first))
            index += 1
            first += count
        return parts


def part_sizes(count: int, native_n: int) -> list[int]:
    """How many outputs to request in each call, so that `count` are made by a model that makes `native_n` a call."""
    full, rest = divmod(count, native_n)
    return [native_n] * full + ([rest] if rest else [])


class AttemptResult(msgspec.Struct, frozen=True):
    """A successful attempt: the provider's result, its stored outputs and its cost."""

    part: Part
    attempt_id: str
    result: Result
    outputs: tuple[StoredOutput, ...]
    price_lines: tuple[Line, ...]  # what it cost; not rounded, the sum over all attempts is
    listed_lines: tuple[Line, ...] | None = None  # at the list price, by an account of the organization

    @property
    def cost_usd(self) -> Decimal:
        return sum((line.cost_usd for line in self.price_lines), Decimal(0))


@dataclass(frozen=True, slots=True)
class _PastFailure:
    round: int
    failure: Failure


@dataclass(slots=True)
class PartHistory:
    """What became of the parts of a generation so far, in this run and in earlier ones."""

    round: int = 1  # all candidates are tried once in each round
    made: list[AttemptResult] = field(default_factory=list)  # a loss, should the generation fail all the same
    _failures: dict[PartKey, _PastFailure] = field(default_factory=dict)  # the last one of each part
    _open: dict[PartKey, AttemptRow] = field(default_factory=dict)  # attempts that an earlier run left open
    _unsent: dict[PartKey, str] = field(default_factory=dict)  # ids of attempts that are stored and to be sent now

    @classmethod
    def of_attempts(
        cls, rows: Iterable[AttemptRow], unsent_ids: Collection[str], charged_ids: Collection[str] = ()
    ) -> "PartHistory":
        """The history from the last attempt of each part. Those with an id in `unsent_ids` were not sent; what those in
        `charged_ids` cost, which failed, is charged.
        """
        history = cls()
        for row in rows:
            key = (row.candidate, row.part)
            history.round = max(history.round, row.round)
            if row.id in unsent_ids:
                history._unsent[key] = row.id
            if not row.is_open:
                charged = Nanos(row.cost or 0) if row.id in charged_ids else ZERO
                history._failures[key] = _PastFailure(row.round, _stored_failure(row, charged))
            elif row.id not in unsent_ids:
                history._open[key] = row
        return history

    # --------------------------------------------------------------------------------------------------------- asking

    def open_attempt(self, part: Part) -> AttemptRow | None:
        """The attempt at this part that an earlier run began and did not end."""
        return self._open.get(part.key)

    def final_failure(self, part: Part) -> Failure | None:
        """Why this part is not tried in this round: it failed in it, or for good in an earlier one."""
        past = self._failures.get(part.key)
        if past is None or (past.round != self.round and past.failure.may_pass):
            return None
        return past.failure

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier run left an attempt open, and it has not failed since."""
        return bool(self._open)

    @property
    def has_unknown_outcome(self) -> bool:
        """Whether outputs may exist that nobody has received."""
        return any(past.failure.unknown for past in self._failures.values())

    @property
    def charged(self) -> Nanos:
        """What failed attempts cost that the caller pays for."""
        return Nanos(sum(past.failure.charged for past in self._failures.values()))

    def has_open_attempt_at(self, candidate_index: int) -> bool:
        """Whether an earlier run left an attempt at this candidate open."""
        return any(index == candidate_index for index, _ in self._open)

    def has_begun_at(self, candidate_index: int) -> bool:
        """Whether an attempt at this candidate is stored and has not ended."""
        return any(index == candidate_index for index, _ in (*self._open, *self._unsent))

    def is_recorded(self, attempt_id: str, state: str) -> bool:
        """Whether an earlier run stored this state of the attempt."""
        return any(row.id == attempt_id and row.state == state for row in self._open.values())

    # ------------------------------------------------------------------------------------------------------- changing

    def add_unsent(self, key: PartKey, attempt_id: str) -> None:
        """Note an attempt that is stored and is to be sent now."""
        self._unsent[key] = attempt_id

    def take_unsent(self, part: Part) -> str | None:
        """The id of an attempt at this part that is stored and is to be sent now, once."""
        return self._unsent.pop(part.key, None)

    def add_outcome(self, part: Part, outcome: AttemptResult | Failure) -> None:
        """Note how an attempt ended."""
        if isinstance(outcome, AttemptResult):
            self.made.append(outcome)
            return
        self._failures[part.key] = _PastFailure(self.round, outcome)
        self._open.pop(part.key, None)


def _stored_failure(attempt: AttemptRow, charged: Nanos) -> Failure:
    kind = attempt.failure_kind or "broken"
    return Failure(
        kind,
        attempt.failure_message or "",
        sent=kind != "unsent",
        unknown=attempt.state == "unknown",
        accepted=attempt.ref is not None,
        charged=charged,
    )
