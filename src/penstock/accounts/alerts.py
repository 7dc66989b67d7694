"""Tell the operator by webhook, once, of budgets nearly or fully used, low balances, failing accounts and buckets."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import structlog

from penstock.accounts.limits import month_start_ms
from penstock.clock import Clock
from penstock.errors import InvalidRequest, StorageUnavailable
from penstock.net.checked_urls import check_webhook_url, egress_rules
from penstock.schema import SLOT_MS
from penstock.settings import Settings
from penstock.store.base import Row, Store, Transaction
from penstock.typed_config import Misconfigured
from penstock.values import Nanos, OrgId, dollars, iso, month_text, nanos, new_id
from penstock.webhooks.events import ALERT_PREFIX, add_alert, alert_body

log = structlog.get_logger("penstock.alerts")

_WARNING_PERCENT = 80
_FULL_PERCENT = 100
_MAX_REMEMBERED = 10_000
# Alerts about the keys of one organization in a month: who may create keys could otherwise cause any number of them.
_KEY_ALERTS_MAX = 100


class _Budget(msgspec.Struct, frozen=True):
    """A monthly budget of an organization, or of one of its keys, and what is spent of it."""

    org_id: OrgId
    org_name: str
    key_id: str | None
    key_name: str | None
    nanos_per_month: Nanos
    spent: Nanos

    @property
    def is_used_up(self) -> bool:
        return self.spent >= self.nanos_per_month


class _LabelBudget(msgspec.Struct, frozen=True, kw_only=True):
    """A monthly budget of a value of a label, and what is spent of it."""

    org_id: OrgId
    org_name: str
    name: str
    value: str
    nanos_per_month: Nanos
    alert_percents: str  # as a JSON list
    spent: Nanos


class _LowBalance(msgspec.Struct, frozen=True):
    """An organization that has little money left."""

    org_id: OrgId
    org_name: str
    available: Nanos
    credit_id: str  # of its newest credit


class Alert(msgspec.Struct, frozen=True):
    """Something that the operator is told once."""

    name: str  # says what it is about and in which period; a second alert with the same name is not sent
    event: str
    data: dict[str, Any]
    unless: str | None = None  # not sent after the alert with this name
    limited_prefix: str | None = None  # not sent after `_KEY_ALERTS_MAX` alerts whose names begin with this


class Alerts:
    """Stores alerts as webhook messages to the URL in the setting `alert_url`; without one it does nothing.

    Any number of processes may look for the same alerts: the store keeps the name of each one that was sent, in the
    transaction that adds its message.
    """

    def __init__(self, store: Store, clock: Clock, settings: Settings, wake: Callable[[], None]) -> None:
        """`wake` has the deliveries look for the new message. Raises Misconfigured for a URL that breaks a rule."""
        self._store = store
        self._clock = clock
        self._url = _checked_url(settings)
        self._low_balance = nanos(settings.alert_balance_usd)
        self._wake = wake
        self._known: set[str] = set()  # names of alerts that were sent

    @property
    def is_on(self) -> bool:
        return bool(self._url)

    async def check(self) -> int:
        """Store an alert for each budget and balance that has reached a threshold; return how many were new."""
        if not self._url:
            return 0
        alerts = [_label_alert(budget, self._period) for budget in await self._label_budgets(None, None, 1)]
        alerts += [
            _budget_alert(budget, self._period, _FULL_PERCENT if budget.is_used_up else _WARNING_PERCENT)
            for budget in await self._budgets(None, _WARNING_PERCENT)
        ]
        if self._low_balance:
            rows = await self._store.slow("list_low_balances", low=self._low_balance)
            alerts += [_balance_alert(_LowBalance(**row), self._low_balance) for row in rows]
        alerts += [_account_alert(row) for row in await self._store.slow("list_failed_accounts")]
        alerts += [_destination_alert(row) for row in await self._store.slow("list_failed_destinations")]
        return sum([await self._store_once(alert) for alert in alerts if alert])

    async def note_refusal(self, budget_of: str, label: tuple[str, str] | None = None) -> None:
        """Store the alert of a budget that is used up: a call was refused because the rest is too small for it.

        `budget_of` is the id of the key or the organization, `label` a label of it with its value. A failure is only
        logged, because the caller gets its response anyway.
        """
        if not self._url or (mark := f"{budget_of} {self._period} {label}") in self._known:
            return
        try:
            if label is None:
                for budget in await self._budgets(budget_of, 0):
                    await self._store_once(_budget_alert(budget, self._period, _FULL_PERCENT))
            else:
                for of_label in await self._label_budgets(OrgId(budget_of), label, 0):
                    if alert := _label_alert(of_label, self._period, is_refused=True):
                        await self._store_once(alert)
        except StorageUnavailable as problem:
            log.warning("alert not stored", budget_of=budget_of, reason=str(problem))
            return
        self._remember(mark)

    async def _budgets(self, budget_of: str | None, percent: int) -> list[_Budget]:
        month = month_start_ms(self._clock.now_ms()) // SLOT_MS
        rows = await self._store.slow("list_budgets", id=budget_of, month=month, percent=percent)
        return [_Budget(**row) for row in rows]

    async def _label_budgets(
        self, org_id: OrgId | None, label: tuple[str, str] | None, percent: int
    ) -> list[_LabelBudget]:
        name, value = label or (None, None)
        rows = await self._store.slow(
            "list_used_label_budgets", month=self._period, org_id=org_id, name=name, value=value, percent=percent
        )
        return [_LabelBudget(**row) for row in rows]

    @property
    def _period(self) -> str:
        return month_text(self._clock.now_ms())

    async def _store_once(self, alert: Alert) -> bool:
        if alert.name in self._known:
            return False
        at_ms = self._clock.now_ms()
        message_id = new_id(ALERT_PREFIX, at_ms)

        async def write(tx: Transaction) -> Literal["stored", "known", "limited"]:
            names = [alert.name, alert.unless] if alert.unless else [alert.name]
            if any([await tx.one("get_fact", name=name) for name in names]):
                return "known"
            if alert.limited_prefix and await _has_many(tx, alert.limited_prefix):
                return "limited"
            if not await tx.run("add_fact", name=alert.name, value=message_id):
                return "known"  # another process has just stored it
            body = alert_body(alert.event, message_id, alert.data)
            await add_alert(tx, message_id=message_id, url=self._url, event=alert.event, body=body, at_ms=at_ms)
            return "stored"

        outcome = await self._store.write(write)
        self._remember(alert.name)
        if outcome == "stored":
            log.warning("alert", alert_event=alert.event, message_id=message_id)
            self._wake()
        elif outcome == "limited" and alert.limited_prefix not in self._known:
            self._remember(str(alert.limited_prefix))
            facts = {"org_id": alert.data["org_id"], "period": alert.data["period"], "limit": _KEY_ALERTS_MAX}
            log.warning("alerts about the keys of an organization are dropped until the next month", **facts)
        return outcome == "stored"

    def _remember(self, name: str) -> None:
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known.add(name)


async def _has_many(tx: Transaction, prefix: str) -> bool:
    """Whether `_KEY_ALERTS_MAX` alerts were sent whose names begin with this."""
    found = await tx.all("list_facts", low=prefix, high=prefix + "~", limit=_KEY_ALERTS_MAX)
    return len(found) >= _KEY_ALERTS_MAX


def _checked_url(settings: Settings) -> str:
    if not settings.alert_url:
        return ""
    try:
        return check_webhook_url(settings.alert_url, egress_rules(settings))
    except InvalidRequest as problem:
        raise Misconfigured(problem.message.replace("webhook_url", "alert_url")) from None


def _budget_alert(budget: _Budget, period: str, percent: int) -> Alert:
    """The alert about a budget of a key or an organization. A changed budget is another one: it has alerts anew."""
    of_org = f"alert {budget.org_id} {period} "
    of_keys = f"{of_org}key "
    name = f"{of_keys}{budget.key_id} " if budget.key_id else of_org
    name += str(budget.nanos_per_month)
    data = {
        "object": "budget",
        "org_id": budget.org_id,
        "org_name": budget.org_name,
        "key_id": budget.key_id,
        "key_name": budget.key_name,
        "period": period,
        "percent": percent,
        "usd_per_month": dollars(budget.nanos_per_month),
        "spent": dollars(budget.spent),
    }
    unless = f"{name} {_FULL_PERCENT}" if percent < _FULL_PERCENT else None
    return Alert(f"{name} {percent}", "budget.reached", data, unless, of_keys if budget.key_id else None)


def _label_alert(budget: _LabelBudget, period: str, *, is_refused: bool = False) -> Alert | None:
    """The alert about the highest percentage that is reached; all of it is if a call was refused."""
    reached = [
        percent
        for percent in msgspec.json.decode(budget.alert_percents, type=list[int])
        if (is_refused and percent <= _FULL_PERCENT) or budget.spent * 100 >= budget.nanos_per_month * percent
    ]
    if not reached:
        return None
    percent = max(reached)
    of_labels = f"alert {budget.org_id} {period} label "
    name = f"{of_labels}{budget.name} {budget.value} {budget.nanos_per_month}"
    data = {
        "object": "budget",
        "org_id": budget.org_id,
        "org_name": budget.org_name,
        "label": {"name": budget.name, "value": budget.value},
        "period": period,
        "percent": percent,
        "usd_per_month": dollars(budget.nanos_per_month),
        "spent": dollars(budget.spent),
    }
    unless = f"{name} {_FULL_PERCENT}" if percent < _FULL_PERCENT else None
    return Alert(f"{name} {percent}", "budget.reached", data, unless, of_labels)


def _balance_alert(balance: _LowBalance, low: Nanos) -> Alert:
    """The alert about a balance. The next credit ends the period."""
    data = {
        "object": "balance",
        "org_id": balance.org_id,
        "org_name": balance.org_name,
        "available": dollars(balance.available),
        "below": dollars(low),
    }
    return Alert(f"alert {balance.org_id} balance {balance.credit_id}", "balance.low", data)


def _account_alert(row: Row) -> Alert:
    """The alert about an account that its vendor refuses. A replaced credential has alerts anew."""
    data = {
        "object": "account",
        "id": row["id"],
        "provider": row["provider"],
        "name": row["name"],
        "refused_with": row["failed_status"],
        "refused_at": iso(row["failed_at_ms"]),
    }
    name = f"alert account {row['id']} {row['version']} {row['failed_status']}"
    return Alert(name, "account.failed", data)


def _destination_alert(row: Row) -> Alert:
    """The alert about a bucket into which outputs cannot be copied. It is sent again after a copy has succeeded."""
    data = {
        "object": "destination",
        "id": row["id"],
        "org_id": row["org_id"],
        "name": row["name"],
        "url": row["url"],
        "failure": row["failure"],
        "failed_at": iso(row["failed_at_ms"]),
    }
    return Alert(f"alert destination {row['id']} {row['failed_at_ms']}", "delivery.failed", data)
