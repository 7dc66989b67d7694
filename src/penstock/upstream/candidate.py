"""A candidate: a provider and one of its models that could serve a request."""

from dataclasses import dataclass, field

from penstock.net.guard import is_public_url
from penstock.providers.spec import Model, Provider


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to serve a request: a model of an active provider, with the provider's key."""

    provider: Provider
    model: Model
    key: str = field(default="", repr=False)

    @property
    def executed_model(self) -> str:
        return f"{self.provider.slug}/{self.model.upstream}"

    @property
    def in_own_network(self) -> bool:
        """Whether the provider may reach hosts that the egress rules block, as a server of the operator's own can."""
        provider = self.provider
        return provider.local is None and (provider.self_hosted or not is_public_url(provider.base_url))
