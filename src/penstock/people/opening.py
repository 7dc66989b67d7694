"""Open what people sign in with, as the settings say."""

from collections.abc import Mapping

import structlog

from penstock.clock import Clock
from penstock.net.client import HttpClient
from penstock.package_extras import check_extra
from penstock.people.configured import read_oidc
from penstock.people.oidc import Issuer
from penstock.people.sessions import Sessions
from penstock.people.sign_in import SignIn
from penstock.people.users import Users
from penstock.settings import PREFIX, Settings
from penstock.vault import Vault

log = structlog.get_logger()
SECRET = PREFIX + "OIDC_CLIENT_SECRET"  # of this gateway at the issuer; without it, it is a public client


async def open_sign_in(
    settings: Settings,
    environ: Mapping[str, str],
    client: HttpClient,
    users: Users,
    sessions: Sessions,
    vault: Vault,
    clock: Clock,
) -> SignIn | None:
    """What signs people in with the issuer of the settings; None without one. Raises Misconfigured and ExtraMissing.

    The issuer itself is asked when the first person signs in, so it may be down at the start.
    """
    config = read_oidc(settings.oidc, settings.public_url)
    if config is None:
        return None
    check_extra("oidc", "sign-in with an issuer")
    for name in await users.unknown_orgs(config.roles):
        log.warning("a role of [[oidc.roles]] is for an organization that does not exist", org=name)
    issuer = Issuer(client, clock, config, environ.get(SECRET, ""))
    return SignIn(config, issuer, users, sessions, vault, clock)
