"""MiniMax's error codes, and the source of its prices."""

from penstock.providers.spec import FailureKind, Source, price_list

FAILURE_KINDS: dict[str, FailureKind] = {
    "1002": "busy",
    "1026": "refused",
    "1027": "refused",
    "2013": "rejected",
    "2056": "busy",
}
price = price_list(Source("MiniMax's price list, as others recorded it", "2026-11-15", is_second_hand=True))


def code_kind(code: int | str | None) -> FailureKind:
    return FAILURE_KINDS.get(str(code), "broken")
