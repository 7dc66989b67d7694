"""The costs of a month as rows in the columns of FOCUS 1.2, the FinOps foundation's format for bills."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from penstock.accounts.labels import decode_labels, encode_labels
from penstock.accounts.request_records import RequestRow
from penstock.values import DAY_MS, Nanos, OrgId, dollars, iso

COLUMNS = (
    "BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "BillingCurrency", "BillingPeriodStart",
    "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd", "ChargeCategory", "ChargeDescription",
    "ConsumedQuantity", "ConsumedUnit", "ServiceName", "ServiceCategory", "ProviderName", "PublisherName",
    "InvoiceIssuerName", "BillingAccountId", "BillingAccountName", "SubAccountId", "ResourceId", "SkuId", "RegionId",
    "Tags", "x_key_id", "x_request_count",
)  # fmt: skip
# What a kind of request consumes, and the beginnings of the metrics that count it.
_UNITS: Mapping[str, tuple[str, str]] = {
    "image": ("Images", "image"),
    "edit": ("Images", "image"),
    "upscale": ("Images", "image"),
    "video": ("Seconds", "second"),
}
_TOKENS = "Tokens"


@dataclass(slots=True)
class _Charge:
    """What the requests of one day, model, provider, key and set of labels cost and consumed."""

    cost: int = 0
    quantity: Decimal = Decimal(0)
    count: int = 0

    def add(self, row: RequestRow) -> None:
        self.cost += row.cost
        self.count += 1
        if row.kind == "chat":
            self.quantity += (row.input_tokens or 0) + (row.output_tokens or 0)
        elif unit := _UNITS.get(row.kind or ""):
            metric = unit[1]
            lines = [line for line in row.decode_cost_lines() if line.metric.startswith(metric)]
            self.quantity += sum((Decimal(str(line.quantity)) for line in lines), Decimal(0))


_Key = tuple[int, str, str, str, str, str, str]  # day, model, provider, executed model, kind, key, labels


@dataclass(slots=True, kw_only=True)
class FocusExport:
    """The charges of one organization in one month (UTC)."""

    org_id: OrgId
    org_name: str
    issuer: str
    start_ms: int
    end_ms: int

    async def rows(self, requests: AsyncIterator[RequestRow]) -> list[dict[str, str]]:
        """One row per day, model, provider, key and set of labels, of requests that were completed or charged."""
        charges: dict[_Key, _Charge] = {}
        async for row in requests:
            if row.cost or row.status == "completed":
                charges.setdefault(_key(row), _Charge()).add(row)
        return list(self._rows(charges))

    def _rows(self, charges: Mapping[_Key, _Charge]) -> Iterator[dict[str, str]]:
        for key in sorted(charges):
            yield self._row(key, charges[key])

    def _row(self, key: _Key, charge: _Charge) -> dict[str, str]:
        day, model, provider, executed, kind, key_id, labels = key
        cost = f"{dollars(Nanos(charge.cost)):f}"
        unit = _TOKENS if kind == "chat" else _UNITS[kind][0] if kind in _UNITS else ""
        has_quantity = bool(unit and charge.quantity)
        row = dict.fromkeys(COLUMNS, "")
        row |= dict.fromkeys(("BilledCost", "EffectiveCost", "ListCost", "ContractedCost"), cost)
        row |= {
            "BillingCurrency": "USD",
            "BillingPeriodStart": iso(self.start_ms),
            "BillingPeriodEnd": iso(self.end_ms),
            "ChargePeriodStart": iso(day * DAY_MS),
            "ChargePeriodEnd": iso((day + 1) * DAY_MS),
            "ChargeCategory": "Usage",
            "ChargeDescription": f"{kind or 'request'} with {model}",
            "ConsumedQuantity": f"{charge.quantity.normalize():f}" if has_quantity else "",
            "ConsumedUnit": unit if has_quantity else "",
            "ServiceName": model,
            "ServiceCategory": "AI and Machine Learning",
            "ProviderName": self.issuer,
            "PublisherName": provider,
            "InvoiceIssuerName": self.issuer,
            "BillingAccountId": self.org_id,
            "BillingAccountName": self.org_name,
            "SubAccountId": self.org_id,
            "SkuId": executed,
            "Tags": labels,
            "x_key_id": key_id,
            "x_request_count": str(charge.count),
        }
        return row


def _key(row: RequestRow) -> _Key:
    labels = encode_labels(decode_labels(row.labels)) or "{}"
    texts = (row.model, row.provider, row.executed_model, row.kind)
    model, provider, executed, kind = (text or "" for text in texts)
    return row.created_at_ms // DAY_MS, model, provider, executed, kind, row.key_id, labels
