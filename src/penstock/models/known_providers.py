"""The providers that a gateway knows: which of them can be used, with which credential, and what the others lack."""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.models import configured, credentials
from penstock.providers.spec import Provider
from penstock.settings import Settings


class KnownProviders:
    """All providers, with the changes and additions of penstock.toml. Those that are active have a credential and are
    not disabled.
    """

    def __init__(self, tables: Iterable[Provider], settings: Settings, environ: Mapping[str, str]) -> None:
        described = {provider.slug: _with_base_url(provider, environ) for provider in tables}
        known = configured.providers(described, settings.providers, settings.data)
        self.known = {provider.slug: provider for provider in known}
        self._inactive = {
            slug: reason
            for slug, provider in self.known.items()
            if (reason := credentials.inactive_reason(provider, settings.disabled_providers, environ))
        }
        self.active = {slug: provider for slug, provider in self.known.items() if slug not in self._inactive}
        self.keys = {slug: environ.get(provider.key_env or "", "") for slug, provider in self.active.items()}
        self.names: Mapping[str, str] = {slug: provider.name for slug, provider in self.known.items()}
        self._variables = {slug: credentials.variables(provider, environ) for slug, provider in self.known.items()}

    def callback_secrets(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The secrets with which providers sign callbacks, by slug, as far as the environment has them."""
        names = {slug: provider.callback_key_env for slug, provider in self.active.items()}
        return {slug: environ[name] for slug, name in names.items() if name and environ.get(name)}

    def missing_credentials(self, model: str) -> str:
        """A sentence about what the inactive providers of a model lack; empty if none of them has it."""
        return credentials.missing_credentials(model, self.known.values(), self._inactive)

    def describe(self) -> list[dict[str, Any]]:
        """All providers as their list shows them, with the reason why one is inactive."""
        return [
            {
                "id": slug,
                "object": "provider",
                "name": provider.name,
                "on": slug not in self._inactive,
                "reason": self._inactive.get(slug),
                "credential": provider.key_env,
                "variables": self._variables[slug],
                "missing": [variable["name"] for variable in self._variables[slug] if not variable["is_set"]],
                "models": len({model.id for model in provider.models}),
            }
            for slug, provider in sorted(self.known.items())
        ]


def _with_base_url(provider: Provider, environ: Mapping[str, str]) -> Provider:
    """A self-hosted provider with its URL from the environment."""
    url = environ.get(provider.base_url_env, "") if provider.base_url_env else ""
    return configured.with_base_url(provider, url) if url else provider
