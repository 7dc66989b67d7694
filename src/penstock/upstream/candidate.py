"""A candidate: a provider and one of its models that could serve a request."""

from dataclasses import dataclass, field
from functools import cached_property

from penstock.net.guard import is_public_url
from penstock.providers.spec import Model, Provider
from penstock.upstream.translate import Target, fixed_target


@dataclass(frozen=True)
class Candidate:
    """One way to serve a request: a model of an active provider, with the provider's key.

    It never changes, so what follows from it is computed once; the catalog has the same one for all calls of a day.
    """

    provider: Provider
    model: Model
    key: str = field(default="", repr=False)

    @cached_property
    def executed_model(self) -> str:
        return f"{self.provider.slug}/{self.model.upstream}"

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
