"""Sign people in with an issuer: out with a sealed cookie, and back with a session."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping

import msgspec

from penstock.clock import Clock
from penstock.people.configured import OidcConfig
from penstock.people.oidc import Issuer, Login, SignInFailed, new_login
from penstock.people.sessions import NewSession, Sessions
from penstock.people.users import Users
from penstock.vault import SealBroken, Vault

LOGIN_SECONDS = 600
_CONTEXT = "sign-in"
_MAX_NEXT_CHARS = 512
_MAX_INVITATION_CHARS = 64
_HOME = "/"


class SignIn:
    """Begins a sign-in, and ends it with a session."""

    def __init__(
        self, config: OidcConfig, issuer: Issuer, users: Users, sessions: Sessions, vault: Vault, clock: Clock
    ) -> None:
        self.config = config
        self.headers: frozenset[str] = frozenset()  # that say who somebody is; an issuer uses none
        self.users = users
        self._issuer = issuer
        self._sessions = sessions
        self._vault = vault
        self._clock = clock

    def subject(self, headers: Mapping[str, str], *, is_proxied: bool) -> str | None:
        """Nobody: an issuer says nothing about single calls."""
        return None

    @property
    def host(self) -> str:
        """The issuer's host, for sentences."""
        return self._issuer.host

    async def begin(self, next_page: str, redirect_uri: str, invitation: str = "") -> tuple[str, str]:
        """Where the browser goes, and what its cookie holds meanwhile. Raises SignInFailed."""
        login = new_login(
            safe_next(next_page), self._clock.now_ms() + LOGIN_SECONDS * 1000, invitation[:_MAX_INVITATION_CHARS]
        )
        url = await self._issuer.sign_in_url(login, redirect_uri)
        return url, urlsafe_b64encode(self._vault.seal(msgspec.json.encode(login), _CONTEXT)).decode().rstrip("=")

    async def end(
        self, cookie: str | None, answer: Mapping[str, str], redirect_uri: str, address: str | None, agent: str
    ) -> tuple[NewSession, str]:
        """The session of who came back, and the page to show. Raises SignInFailed."""
        login = self._opened(cookie)
        identity = await self._issuer.identify(login, answer, redirect_uri)
        caller = await self.users.enter(identity, self.config.roles, address, login.invitation)
        return await self._sessions.begin(caller, address, agent, keep=False), login.next

    async def sign_out(self, token: str) -> int:
        """End the sessions of the person in a logout token of the issuer; return how many. Raises SignInFailed."""
        person = await self._issuer.signed_out(token)
        return await self._sessions.end_of_person(self.config.issuer, person.subject, person.begun_until_ms)

    def _opened(self, cookie: str | None) -> Login:
        try:
            sealed = urlsafe_b64decode((cookie or "") + "=" * (-len(cookie or "") % 4))
            login = msgspec.json.decode(self._vault.open(sealed, _CONTEXT), type=Login)
        except (ValueError, SealBroken):
            raise SignInFailed("expired", "the cookie of the sign-in is missing or broken") from None
        if login.until_ms < self._clock.now_ms():
            raise SignInFailed("expired", "the sign-in took longer than ten minutes")
        return login


def safe_next(page: str) -> str:
    """A page of this gateway to go to afterwards; anything else is its first page."""
    is_ours = page.startswith("/") and not page.startswith(("//", "/\\")) and page.isprintable() and "\\" not in page
    return page if is_ours and len(page) <= _MAX_NEXT_CHARS else _HOME
