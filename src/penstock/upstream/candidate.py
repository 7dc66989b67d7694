"""A candidate: a provider and one of its models that could serve a request."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

from msgspec import structs

from penstock.net.checked_urls import is_public_url
from penstock.providers.spec import Model, Provider, Result
from penstock.upstream.drill import Drill
from penstock.upstream.token_prices import TokenPrices
from penstock.upstream.translate import Target, fixed_target
from penstock.upstream.vendor_account import VendorAccount


@dataclass(frozen=True)
class Candidate:
    """One way to serve a request: a model of an active provider, with the credential of the environment or an account.

    It never changes, so what follows from it is computed once; the catalog has the same one for all calls of a day.
    """

    provider: Provider
    model: Model
    own_key: str = field(default="", repr=False)  # of the environment
    account: VendorAccount | None = None  # whose credential is used instead
    listed: Model | None = None  # with an account of the caller's organization: the model at its list price
    fee_percent: int | None = None  # and the part of the list price that is charged
    drill: Drill | None = None  # the faults of the call that it is a candidate of
    in_batch: bool = False  # a call of a batch of the provider's, at its price

    @property
    def key(self) -> str:
        """The credential, which may have been rotated since the candidate was made."""
        return self.own_key if self.account is None else self.account.credential

    @property
    def is_rated(self) -> bool:
        """Whether its successes and failures say something about the provider's health."""
        return self.drill is None and not self.in_batch

    @cached_property
    def batched(self) -> "Candidate | None":
        """The same candidate for a call that goes with a batch of the provider's; None if it has none, or no price."""
        batches = self.model.op.batches
        if batches is None or self.drill is not None or not self.model.prices:
            return None
        model = replace(self.model, prices=batches.prices(self.model.prices))
        listed = self.listed and replace(self.listed, prices=batches.prices(self.listed.prices))
        return replace(self, model=model, listed=listed, in_batch=True)

    @property
    def account_id(self) -> str:
        """The id of the account; empty for the credential of the environment."""
        return "" if self.account is None else self.account.id

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Note what the vendor says of the limits of the account."""
        if self.account is not None:
            self.account.limits.read_headers(headers)

    @cached_property
    def health_key(self) -> tuple[str, str]:
        """What its health is kept by: each account has its own."""
        slug = self.provider.slug if self.account is None else f"{self.provider.slug} {self.account.id}"
        return slug, self.model.upstream

    @cached_property
    def executed_model(self) -> str:
        return f"{self.provider.slug}/{self.model.upstream}"

    @cached_property
    def executed_model_header(self) -> Mapping[str, str]:
        """The header that names who served a call. Routers have models with names that no header can have."""
        name = self.executed_model
        is_header = name.isascii() and name.isprintable()
        return {"x-service-executed-model": name if is_header else self.provider.slug}

    @cached_property
    def token_prices(self) -> TokenPrices:
        """What the tokens of its chat calls cost."""
        return TokenPrices.of(self.model, self.fee_percent)

    def charged(self, result: Result) -> Result:
        """The result with the cost that is charged: by an account of the organization, a part of what it reports."""
        if self.fee_percent is None or result.cost_usd is None:
            return result
        return structs.replace(result, cost_usd=f"{Decimal(result.cost_usd) * self.fee_percent / 100:f}")

    @property
    def target(self) -> Target | None:
        """Where its requests with JSON go; None if each one needs headers of its own, or its token has changed."""
        target = self._fixed_target
        return target if target is not None and target.auth == self.provider.auth(self.key) else None

    @cached_property
    def _fixed_target(self) -> Target | None:
        return fixed_target(self.provider, self.model, self.key)

    @property
    def in_own_network(self) -> bool:
        """Whether the provider may reach hosts that the egress rules block, as a server of the operator's own can."""
        provider = self.provider
        return provider.local is None and (provider.self_hosted or not is_public_url(provider.base_url))


@contextmanager
def counted(candidate: Candidate, *, is_new: bool = True) -> Iterator[None]:
    """Count a call for the account of a candidate, or go on with a job that was counted when it began."""
    if candidate.account is None:
        yield
        return
    limits = candidate.account.limits
    limits.begin(is_new=is_new)
    try:
        yield
    finally:
        limits.end()
