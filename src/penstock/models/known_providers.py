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

    def __init__(
        self,
        tables: Iterable[Provider],
        settings: Settings,
        environ: Mapping[str, str],
        with_accounts: frozenset[str] = frozenset(),
    ) -> None:
        """`with_accounts` are the providers that have accounts: these need no credential in the environment."""
        self.with_accounts = with_accounts
        described = {provider.slug: _with_base_url(provider, environ) for provider in tables}
        known = configured.providers(described, settings.providers, settings.data)
        self.known = {provider.slug: provider for provider in known}
        reasons = {
            slug: credentials.inactive_reason(provider, settings.disabled_providers, environ)
            for slug, provider in self.known.items()
        }
        self._by_accounts_only = {
            slug
            for slug in reasons
            if slug in with_accounts or slug in settings.own_accounts or "*" in settings.own_accounts
            if reasons[slug] is not None and credentials.lacks_key_only(self.known[slug], settings, environ)
        }
        self._inactive = {
            slug: reason for slug, reason in reasons.items() if reason and slug not in self._by_accounts_only
        }
        self.active = {slug: provider for slug, provider in self.known.items() if slug not in self._inactive}
        self.keys = {
            slug: environ.get(provider.key_env or "", "") if slug not in self._by_accounts_only else ""
            for slug, provider in self.active.items()
        }
        self.names: Mapping[str, str] = {slug: provider.name for slug, provider in self.known.items()}
        self._variables = {slug: credentials.variables(provider, environ) for slug, provider in self.known.items()}

    def callback_secrets(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The secrets with which providers sign callbacks, by slug, as far as the environment has them."""
        names = {slug: provider.callback_key_env for slug, provider in self.active.items()}
        return {slug: environ[name] for slug, name in names.items() if name and environ.get(name)}

    def upstream_models(self) -> set[tuple[str, str]]:
        """Slug and upstream name of each model in a table; callers may name others where a provider takes any."""
        return {(slug, model.upstream) for slug, provider in self.active.items() for model in provider.models}

    def has_own_credential(self, slug: str) -> bool:
        """Whether a provider that is active can be used without an account."""
        return slug not in self._by_accounts_only

    def missing_credentials(self, model: str) -> str:
        """A sentence about what the inactive providers of a model lack; empty if none of them has it."""
        return credentials.missing_credentials(model, self.known.values(), self._inactive)

    def missing(self) -> dict[str, list[str]]:
        """The variables that would switch providers on, by slug; not of those that the settings switch off."""
        rows = ((slug, variables) for slug, variables in self._variables.items() if slug in self._inactive)
        return {
            slug: names
            for slug, variables in rows
            if credentials.is_about_a_variable(self._inactive[slug])
            if (names := [variable["name"] for variable in variables if not variable["is_set"]])
        }

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
