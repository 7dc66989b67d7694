"""Show usage over time and the most frequent failures."""

import asyncio
from collections.abc import Mapping
from typing import Any

from penstock.accounts.key_records import OPERATOR
from penstock.accounts.requests import KINDS
from penstock.accounts.usage import BUCKETS, DEFAULT_DAYS, MAX_BUCKETS, Accounts, UsageFilters
from penstock.api import query
from penstock.api.endpoints.label_filters import GROUP_BY, LABEL_FILTER, check_label_filter, read_group_by
from penstock.api.paging import LIMIT
from penstock.api.responses import encode
from penstock.api.route import Query
from penstock.gateway import Gateway
from penstock.generations.records import failure_reasons
from penstock.models.vendor_accounts import ANYBODY
from penstock.schema import Call, Response
from penstock.values import DAY_MS

_LAST_MS = 2**47  # in the year 6429; dates end in 9999
_FILTERS = (
    Query(name="key_id", about="Made with this key."),
    Query(name="model", about="Of this model, by the name in the call."),
    Query(name="provider", about="Served by this provider, or last sent to it."),
    Query(name="kind", one_of=KINDS, about="Of this kind."),
    Query(name="user", about="Of this end user."),
    Query(name="session_id", about="Of this session."),
    LABEL_FILTER,
)
_BEFORE = Query(name="created_before", type="time", about="Created at this moment or earlier; by default now.")
USAGE_QUERY = (
    Query(
        name="created_after",
        type="time",
        about=f"Created at this moment or later; by default {DEFAULT_DAYS} days before the end.",
    ),
    _BEFORE,
    Query(
        name="bucket",
        one_of=BUCKETS,
        default="day",
        about=f"Length of a bucket of time in UTC; at most {MAX_BUCKETS} buckets.",
    ),
    GROUP_BY,
    *_FILTERS,
)
FAILURES_QUERY = (
    LIMIT,
    Query(name="created_after", type="time", about="Created at this moment or later; by default a day before the end."),
    _BEFORE,
    *_FILTERS,
)


async def retrieve_usage(gateway: Gateway, call: Call) -> Response:
    asked = query.read(USAGE_QUERY, call.query)
    filters = _filters(gateway, call, asked, DEFAULT_DAYS)
    group_by = read_group_by(call.caller, asked["group_by"])
    is_operator = OPERATOR in call.caller.scopes
    owner = ANYBODY if is_operator else call.caller.org_id
    accounts = Accounts(gateway.vendor_accounts.names(owner), are_all=is_operator)
    report = await gateway.usage.report(call.caller.org_id, filters, asked["bucket"], group_by, accounts)
    return Response(body=await asyncio.to_thread(encode, report))  # it may have megabytes


async def list_failures(gateway: Gateway, call: Call) -> Response:
    asked = query.read(FAILURES_QUERY, call.query)
    org_id = call.caller.org_id
    failures = await gateway.usage.list_failures(org_id, _filters(gateway, call, asked, 1), asked["limit"])
    reasons = await failure_reasons(gateway.store, org_id, [failure["last_request_id"] for failure in failures])
    data = [{**failure, "reason": reasons.get(failure["last_request_id"])} for failure in failures]
    return Response(json={"object": "list", "data": data})


def _filters(gateway: Gateway, call: Call, asked: Mapping[str, Any], days: int) -> UsageFilters:
    check_label_filter(call.caller, asked["label."])
    before_ms = asked["created_before"]
    end_ms = min(gateway.clock.now_ms() if before_ms is None else before_ms, _LAST_MS) + 1
    after_ms = asked["created_after"]
    return UsageFilters(
        start_ms=max(0, end_ms - days * DAY_MS) if after_ms is None else max(0, after_ms),
        end_ms=end_ms,
        key_id=asked["key_id"],
        model=asked["model"],
        provider=asked["provider"],
        kind=asked["kind"],
        user=asked["user"],
        session_id=asked["session_id"],
        labels=asked["label."],
    )
