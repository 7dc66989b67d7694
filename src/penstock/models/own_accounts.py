"""Accounts that organizations bring: where they may, and what calls cost by them, since the vendor's bill is theirs."""

from dataclasses import replace
from decimal import Decimal

from penstock.providers.spec import Model, Price, Provider
from penstock.settings import Settings
from penstock.upstream.candidate import Candidate
from penstock.upstream.vendor_account import VendorAccount


def with_fee(model: Model, percent: int) -> Model:
    """The model at so many percent of its prices."""
    return replace(model, prices=tuple(_with_fee(price, Decimal(percent) / 100) for price in model.prices))


def _with_fee(price: Price, share: Decimal) -> Price:
    def part(usd: str) -> str:
        return f"{Decimal(usd) * share:f}"

    return replace(
        price,
        usd=part(price.usd),
        input_usd=part(price.input_usd),
        each_usd=part(price.each_usd),
        prompt_usd=part(price.prompt_usd),
        least_usd=part(price.least_usd),
        least_second_usd=part(price.least_second_usd),
        other_usd={name: part(usd) for name, usd in price.other_usd.items()},
    )


def takes_own_accounts(settings: Settings, provider: Provider) -> bool:
    """Whether organizations may bring accounts at a provider; its URL is the operator's in any case."""
    allowed = settings.own_accounts
    return provider.key_env is not None and (provider.slug in allowed or "*" in allowed)


def by_account(candidate: Candidate, account: VendorAccount, fee_percent: int | None) -> Candidate:
    """The candidate with an account; at a part of its prices if the vendor's bill is the organization's."""
    if fee_percent is None:
        return replace(candidate, account=account)
    model = with_fee(candidate.model, fee_percent)
    return replace(candidate, account=account, model=model, listed=candidate.model, fee_percent=fee_percent)
