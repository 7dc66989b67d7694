"""What can be set of an account at a vendor, checked, and what is shown of it."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from penstock.errors import InvalidRequest
from penstock.store.base import Row
from penstock.upstream.vendor_account import VendorAccount
from penstock.values import Nanos, dollars, iso, nanos

MAX_NAME_CHARS = 100
MAX_WEIGHT = 100
MAX_PRIORITY = 1000
MAX_CREDENTIAL_CHARS = 8192  # a service account in JSON has some thousands
STATUSES = ("on", "off")  # that operators set
MAX_CONCURRENT = 100_000
MAX_PER_MINUTE = 1_000_000
MAX_USD = 1_000_000_000
NEW_ACCOUNT: Row = {  # what is not given
    "name": "",
    "weight": 1,
    "priority": 0,
    "models": None,
    "concurrent": None,
    "requests_per_minute": None,
    "nanos_per_month": None,
    "fee_percent": None,
    "fallback_to_shared": 0,
}
_MAX_MODELS = 200
# name, smallest, largest, and what null stands for
_NUMBERS = (
    ("weight", 1, MAX_WEIGHT, 1),
    ("priority", 0, MAX_PRIORITY, 0),
    ("concurrent", 1, MAX_CONCURRENT, None),
    ("requests_per_minute", 1, MAX_PER_MINUTE, None),
    ("fee_percent", 0, 100, None),
)


def account_record(account: VendorAccount) -> dict[str, Any]:
    return {
        "id": account.id,
        "object": "account",
        "provider": account.provider,
        "name": account.name,
        "org_id": account.org_id,
        "status": account.status,
        "weight": account.weight,
        "priority": account.priority,
        "models": None if account.models is None else list(account.models),
        "concurrent": account.concurrent,
        "requests_per_minute": account.requests_per_minute,
        "usd_per_month": None if account.nanos_per_month is None else dollars(Nanos(account.nanos_per_month)),
        "fee_percent": account.fee_percent,
        "fallback_to_shared": account.fallback_to_shared,
        "spent_this_month": dollars(Nanos(account.spent)),
        "health": _health(account),
        "last_four": account.last_four,
        "version": account.version,
        "created_at": iso(account.created_at_ms),
    }


def account_facts(columns: Row) -> Row:
    """What is set and not secret of an account, for the audit log."""
    facts = {
        name: value for name, value in columns.items() if name in (*NEW_ACCOUNT, "provider", "status", "last_four")
    }
    if (limit := facts.pop("nanos_per_month", None)) is not None:
        facts["usd_per_month"] = f"{dollars(Nanos(limit)):f}"
    return {name: value for name, value in facts.items() if value is not None}


def account_columns(options: Mapping[str, Any]) -> Row:
    """The columns of the options that are given, checked; None stands for the default."""
    columns: Row = {}
    for name, low, high, default in _NUMBERS:
        if name in options:
            columns[name] = value = default if options[name] is None else options[name]
            if value is not None and (type(value) is not int or not low <= value <= high):
                raise InvalidRequest(f"`{name}` must be a whole number from {low} to {high}.", param=name)
    if "usd_per_month" in options:
        columns["nanos_per_month"] = _nanos_column(options["usd_per_month"])
    if options.get("status") is not None:
        columns["status"] = options["status"]
        if options["status"] not in STATUSES:
            raise InvalidRequest("`status` must be one of `on`, `off`.", param="status")
    for name, convert in (
        ("name", _name_column),
        ("fallback_to_shared", _flag_column),
        ("models", _models_column),
    ):
        if name in options:
            columns[name] = convert(options[name])
    return columns


def _name_column(name: Any) -> str:
    name = name or ""
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise InvalidRequest(f"`name` must have at most {MAX_NAME_CHARS} printable characters.", param="name")
    return name


def _flag_column(value: Any) -> int:
    if value not in (None, False, True):
        raise InvalidRequest("`fallback_to_shared` must be true or false.", param="fallback_to_shared")
    return int(value or False)


def _nanos_column(usd: Any) -> Nanos | None:
    if usd is None:
        return None
    if isinstance(usd, bool) or not isinstance(usd, int | float | Decimal) or not 0.01 <= usd <= MAX_USD:
        raise InvalidRequest(f"`usd_per_month` must be from 0.01 to {MAX_USD} dollars.", param="usd_per_month")
    return nanos(Decimal(str(usd)))


def _models_column(models: Sequence[Any] | None) -> str | None:
    if models is None:
        return None
    if not 1 <= len(models) <= _MAX_MODELS or not all(isinstance(name, str) and name for name in models):
        message = f"`models` must be a list of 1 to {_MAX_MODELS} model ids; one may end with `*`."
        raise InvalidRequest(message, param="models")
    return msgspec.json.encode(list(models)).decode()


def _health(account: VendorAccount) -> dict[str, Any]:
    """What stands in the way of calls, and what was learned, as this process knows it."""
    limits = account.limits
    wait = account.wait
    if account.failed_status is not None:
        state = "refused"
    elif account.is_spent:
        state = "spent"
    else:
        state = "works" if wait is None else "limited"
    return {
        "state": state,
        "refused_with": account.failed_status,
        "refused_at": None if account.failed_at_ms is None else iso(account.failed_at_ms),
        "free_in_seconds": None if wait is None else round(wait.seconds, 1),
        "open": limits.open,
        "calls_of_last_minute": limits.starts_of_last_minute,
        "learned_concurrent": limits.concurrent,
        "learned_per_minute": None if limits.rate is None else round(limits.rate, 1),
    }
