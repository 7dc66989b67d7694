"""Forecast the cost of this month, and export the costs of a month in the columns of FOCUS."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from penstock.accounts.focus import COLUMNS, FocusExport
from penstock.accounts.forecast import HISTORY_DAYS, forecast_record
from penstock.accounts.label_budgets import list_budgets
from penstock.accounts.limits import month_start_ms, next_month_ms
from penstock.accounts.orgs import get_org
from penstock.accounts.request_filters import Filters
from penstock.accounts.usage import UsageFilters
from penstock.api import query
from penstock.api.endpoints.csv_export import csv_cell, csv_line
from penstock.api.endpoints.label_filters import LABEL_FILTER, check_label_filter
from penstock.api.route import Query
from penstock.audit_log import Act, note_act
from penstock.errors import InvalidRequest
from penstock.gateway import Gateway
from penstock.schema import EACH_VALUE, Call, Response
from penstock.values import DAY_MS, Nanos, iso, nanos

FORECAST_QUERY = (LABEL_FILTER,)
FOCUS_QUERY = (Query(name="month", about="A month in UTC such as `2026-11`; by default the current one."),)
_MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")


async def forecast_usage(gateway: Gateway, call: Call) -> Response:
    """Forecast the month of the organization, or of one value of a label."""
    labels = query.read(FORECAST_QUERY, call.query)["label."]
    check_label_filter(call.caller, labels)
    if len(labels) > 1:
        raise InvalidRequest("A forecast takes one label at most.", param="label.")
    now_ms = gateway.clock.now_ms()
    today_ms = now_ms // DAY_MS * DAY_MS
    month_ms = month_start_ms(now_ms)
    daily = await _daily_costs(gateway, call, labels, today_ms - HISTORY_DAYS * DAY_MS, today_ms)
    spent = sum(await _daily_costs(gateway, call, labels, month_ms, now_ms + 1))
    budget = await _budget(gateway, call, labels, now_ms)
    body = forecast_record(daily, spent, budget, now_ms, month_ms, next_month_ms(now_ms))
    return Response(json={**body, "labels": labels})


async def _daily_costs(gateway: Gateway, call: Call, labels: dict[str, str], start_ms: int, end_ms: int) -> list[int]:
    """The cost of each day in nano-dollars."""
    filters = UsageFilters(start_ms=start_ms, end_ms=end_ms, labels=labels)
    report = await gateway.usage.report(call.caller.org_id, filters, "day")
    return [nanos(day["cost"]) for day in report["data"]]


async def _budget(gateway: Gateway, call: Call, labels: dict[str, str], now_ms: int) -> Nanos | None:
    """What the organization, or the value of the label, may spend in a month."""
    org_id = call.caller.org_id
    if not labels:
        limit = (await get_org(gateway.store, org_id)).nanos_per_month
        return None if limit is None else Nanos(limit)
    [(name, value)] = labels.items()
    limits = {
        budget.value: budget.nanos_per_month
        for budget in await list_budgets(gateway.store, org_id, now_ms)
        if budget.name == name
    }
    return limits.get(value, limits.get(EACH_VALUE))


async def export_focus(gateway: Gateway, call: Call) -> Response:
    """Return the costs of a month as CSV, one row per day, model, provider, key and set of labels."""
    month = query.read(FOCUS_QUERY, call.query)["month"]
    start_ms = month_start_ms(gateway.clock.now_ms()) if month is None else _month_ms(month)
    end_ms = next_month_ms(start_ms)
    org = await get_org(gateway.store, call.caller.org_id)
    export = FocusExport(
        org_id=org.id,
        org_name=org.name,
        issuer=gateway.settings.invoice_issuer,
        start_ms=start_ms,
        end_ms=end_ms,
    )
    filters = Filters(created_after_ms=start_ms, created_before_ms=end_ms - 1)
    rows = await export.rows(gateway.requests.iterate(org.id, filters))
    await note_act(gateway.store, call.at_ms, Act("costs.exported", org.id, org.id, after={"from": iso(start_ms)}))
    name = f"focus-{datetime.fromtimestamp(start_ms / 1000, UTC):%Y-%m}.csv"
    return Response(
        chunks=_csv(rows),
        headers={"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"},
        media_type="text/csv; charset=utf-8",
    )


def _month_ms(text: str) -> int:
    found = _MONTH.fullmatch(text)
    if found is None:
        raise InvalidRequest("`month` must be a month such as `2026-11`.", param="month")
    return int(datetime(int(found[1]), int(found[2]), 1, tzinfo=UTC).timestamp()) * 1000


async def _csv(rows: list[dict[str, str]]) -> AsyncIterator[bytes]:
    yield csv_line(COLUMNS)
    for row in rows:
        yield csv_line([csv_cell(row[name]) for name in COLUMNS])
