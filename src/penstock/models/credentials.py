"""Say why a provider cannot be used, and which credentials a model lacks."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from penstock.providers.spec import Provider
from penstock.settings import Settings

_NOT_SET = " is not set"


def inactive_reason(provider: Provider, disabled: Container[str], environ: Mapping[str, str]) -> str | None:
    """Why a provider cannot be used; None if it can."""
    if provider.slug in disabled:
        return "switched off in the settings"
    if provider.base_url_env and provider.base_url_env not in environ:
        return f"{provider.base_url_env}{_NOT_SET}"
    if provider.key_env is not None and not environ.get(provider.key_env):
        return f"{provider.key_env}{_NOT_SET}"
    if problem := provider.key_problem(environ.get(provider.key_env or "", "")):
        return f"not usable: {problem}"
    return None


def lacks_key_only(provider: Provider, settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether an inactive provider needs nothing but a credential, which an account has."""
    if provider.slug in settings.disabled_providers or provider.key_env is None:
        return False
    return not (provider.base_url_env and provider.base_url_env not in environ)


def is_about_a_variable(reason: str) -> bool:
    """Whether a provider is only off because a variable is not set."""
    return reason.endswith(_NOT_SET)


def missing_credentials(model: str, providers: Iterable[Provider], inactive: Mapping[str, str]) -> str:
    """A sentence about what the inactive providers of a model lack; empty if none of them has it. `inactive` has the
    reasons by slug.
    """
    slug, slash, _ = model.partition("/")
    reasons = [
        inactive[provider.slug]
        for provider in providers
        if provider.slug in inactive
        if (slash and slug == provider.slug) or any(model in (each.id, *each.aliases) for each in provider.models)
    ]
    variables = sorted({reason.removesuffix(_NOT_SET) for reason in reasons if is_about_a_variable(reason)})
    if variables:
        *others, last = variables
        listed = f"{', '.join(others)} or {last}" if others else last
        return f" `{model.rstrip('/')}` needs {listed}, which the gateway's environment does not have."
    return f" Its provider is {reasons[0]}." if reasons else ""


def variables(provider: Provider, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """The environment variables that a provider needs, and whether they are set."""
    named = {"base_url": provider.base_url_env, "credential": provider.key_env}
    return [
        {"name": name, "purpose": purpose, "is_set": bool(environ.get(name))} for purpose, name in named.items() if name
    ]
