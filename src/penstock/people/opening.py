"""Open what keeps people, and what they sign in with, as the settings say."""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from penstock.accounts.keys import Keys
from penstock.clock import Clock
from penstock.net.client import HttpClient
from penstock.package_extras import check_extra
from penstock.people.configured import RoleRule, read_oidc, read_proxy_sign_in
from penstock.people.invitations import Invitations
from penstock.people.oidc import Issuer
from penstock.people.own_keys import OwnKeys
from penstock.people.proxy_sign_in import ProxySignIn
from penstock.people.sessions import Sessions
from penstock.people.sign_in import SignIn
from penstock.people.users import Users
from penstock.settings import PREFIX, Settings
from penstock.store.base import Store
from penstock.typed_config import Misconfigured
from penstock.vault import Vault

log = structlog.get_logger()
SECRET = PREFIX + "OIDC_CLIENT_SECRET"  # of this gateway at the issuer; without it, it is a public client
PROXY_SECRET = PREFIX + "PROXY_SIGN_IN_SECRET"  # by which the proxy that signs people in is known


@dataclass(frozen=True, slots=True)
class People:
    """What keeps people, their sessions and their keys, and what they sign in with."""

    users: Users
    sessions: Sessions
    own_keys: OwnKeys
    invitations: Invitations
    sign_in: SignIn | ProxySignIn | None  # with an issuer, or through a proxy; None: people sign in with keys


async def open_people(
    settings: Settings,
    environ: Mapping[str, str],
    client: HttpClient,
    store: Store,
    keys: Keys,
    vault: Vault,
    clock: Clock,
) -> People:
    """Raises Misconfigured and ExtraMissing.

    The issuer itself is asked when the first person signs in, so it may be down at the start.
    """
    users = Users(store, clock)
    sessions = Sessions(store, clock, settings.session_hours)
    sign_in = await _open_sign_in(settings, environ, client, users, sessions, vault, clock)
    return People(users, sessions, OwnKeys(store, clock, keys), Invitations(store, clock), sign_in)


async def _open_sign_in(
    settings: Settings,
    environ: Mapping[str, str],
    client: HttpClient,
    users: Users,
    sessions: Sessions,
    vault: Vault,
    clock: Clock,
) -> SignIn | ProxySignIn | None:
    """What signs people in as the settings say; None without it."""
    proxy_secret = environ.get(PROXY_SECRET, "")
    through_proxy = read_proxy_sign_in(settings.proxy_sign_in, settings.trusted_proxies, proxy_secret, PROXY_SECRET)
    config = read_oidc(settings.oidc, settings.public_url)
    if config is not None and through_proxy is not None:
        raise Misconfigured("penstock.toml has the tables oidc and proxy_sign_in: people sign in one way, remove one")
    if through_proxy is not None:
        await _name_unknown_orgs(users, through_proxy.roles, "proxy_sign_in")
        return ProxySignIn(through_proxy, proxy_secret, users, sessions)
    if config is None:
        return None
    check_extra("oidc", "sign-in with an issuer")
    await _name_unknown_orgs(users, config.roles, "oidc")
    issuer = Issuer(client, clock, config, environ.get(SECRET, ""))
    return SignIn(config, issuer, users, sessions, vault, clock)


async def _name_unknown_orgs(users: Users, rules: tuple[RoleRule, ...], table: str) -> None:
    for name in await users.unknown_orgs(rules):
        log.warning(f"a role of [[{table}.roles]] is for an organization that does not exist", org=name)
