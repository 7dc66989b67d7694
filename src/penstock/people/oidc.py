"""An OpenID Connect issuer: where people are sent to sign in, and what it says about who came back."""

import hashlib
import hmac
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from penstock.clock import Clock
from penstock.net.client import HttpClient
from penstock.net.errors import MaybeSent, NotSent
from penstock.people.configured import LOOPBACK, OidcConfig
from penstock.providers.exchange import HttpRequest

ALGORITHMS = ("RS256", "ES256", "EdDSA", "PS256")
SKEW_SECONDS = 60
_METADATA_SECONDS = 3600.0
_KEYS_AGAIN_SECONDS = 60.0  # after which a key that is not known is looked for once more
_TIMEOUT_SECONDS = 10.0
_MAX_BYTES = 65_536
_MAX_TOKEN_CHARS = 16_384
_MAX_GROUPS = 1000
_LOGOUT = "http://schemas.openid.net/event/backchannel-logout"


class SignInFailed(Exception):
    """Somebody cannot be signed in. The code is for the page, the message for the log."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Login(msgspec.Struct, frozen=True):
    """What must come back from the issuer unchanged, and what proves that it came back to us."""

    state: str
    nonce: str
    verifier: str
    next: str
    until_ms: int
    invitation: str = ""


class Identity(NamedTuple):
    """Who the issuer says that somebody is."""

    issuer: str
    subject: str
    email: str | None  # in lower case
    email_verified: bool
    name: str | None
    groups: frozenset[str]


class _Metadata(msgspec.Struct, frozen=True):
    """What the issuer publishes about itself."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _Tokens(msgspec.Struct, frozen=True):
    """The answer to a code."""

    id_token: str
    access_token: str = ""


def new_login(next_page: str, until_ms: int, invitation: str = "") -> Login:
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    return Login(state, nonce, verifier, next_page, until_ms, invitation)


class SignedOut(NamedTuple):
    """Whose sessions end: those that began until then, so that a token that is sent again ends no later ones."""

    subject: str
    begun_until_ms: int


class Issuer:
    """Talks to one issuer. What it publishes is kept for an hour."""

    def __init__(self, client: HttpClient, clock: Clock, config: OidcConfig, client_secret: str) -> None:
        self._client = client
        self._clock = clock
        self._config = config
        self._secret = client_secret
        self._metadata: tuple[float, _Metadata] | None = None
        self._keys: dict[str, Any] = {}
        self._keys_from = -_METADATA_SECONDS
        self._asked_again = -_KEYS_AGAIN_SECONDS

    @property
    def host(self) -> str:
        return urlsplit(self._config.issuer).hostname or ""

    async def sign_in_url(self, login: Login, redirect_uri: str) -> str:
        """Where the browser is sent to. Raises SignInFailed if the issuer does not answer."""
        metadata = await self._read_metadata()
        challenge = urlsafe_b64encode(hashlib.sha256(login.verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self._config.client_id,
            "redirect_uri": redirect_uri,
            "scope": self._config.scopes,
            "state": login.state,
            "nonce": login.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        separator = "&" if "?" in metadata.authorization_endpoint else "?"
        return f"{metadata.authorization_endpoint}{separator}{urlencode(asked, quote_via=quote)}"

    async def identify(self, login: Login, answer: Mapping[str, str], redirect_uri: str) -> Identity:
        """Who came back with this answer. Raises SignInFailed for anything that is not as it must be."""
        if not hmac.compare_digest(answer.get("state", "").encode(), login.state.encode()):
            raise SignInFailed("expired", "the state is not that of the cookie")
        metadata = await self._read_metadata()
        needs_issuer = metadata.authorization_response_iss_parameter_supported
        if answer.get("iss", "" if needs_issuer else metadata.issuer) != metadata.issuer:
            raise SignInFailed("failed", "the answer is from another issuer")
        if "error" in answer:
            raise SignInFailed("refused", f"the issuer refused: {answer['error'][:64]!r}")
        if not answer.get("code"):
            raise SignInFailed("failed", "the issuer sent no code")
        tokens = await self._exchange(metadata, answer["code"], login.verifier, redirect_uri)
        claims = await self._check(metadata, tokens.id_token)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), login.nonce.encode()):
            raise SignInFailed("failed", "the ID token is of another sign-in: its nonce differs")
        return await self._identity(metadata, claims, tokens.access_token)

    async def signed_out(self, token: str) -> SignedOut:
        """Whom a logout token of the issuer signs out. Raises SignInFailed for any other token."""
        claims = await self._check(await self._read_metadata(), token)
        events = claims.get("events")
        if not isinstance(events, dict) or not isinstance(events.get(_LOGOUT), dict) or "nonce" in claims:
            raise SignInFailed("failed", "it is a token of the issuer, but no logout token")
        return SignedOut(_subject(claims), (int(claims["iat"]) + SKEW_SECONDS) * 1000)

    # --------------------------------------------------------------------------------------------------- the issuer

    async def _read_metadata(self) -> _Metadata:
        now = self._clock.monotonic()
        if self._metadata is None or now - self._metadata[0] > _METADATA_SECONDS:
            url = f"{self._config.issuer.rstrip('/')}/.well-known/openid-configuration"
            metadata = _decode(await self._get(url), _Metadata, "its configuration")
            if metadata.issuer != self._config.issuer:
                raise SignInFailed("failed", f"{url} is about the issuer {metadata.issuer[:200]!r}")
            endpoints = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
            for endpoint in (*endpoints, metadata.userinfo_endpoint or metadata.jwks_uri):
                self._check_endpoint(endpoint)
            self._metadata = now, metadata
        return self._metadata[1]

    def _check_endpoint(self, url: str) -> None:
        """Plain HTTP only where the issuer itself is on this machine."""
        parts = urlsplit(url)
        is_local = self.host in LOOPBACK and parts.hostname in LOOPBACK
        if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
            raise SignInFailed("failed", f"the issuer names an endpoint without https: {url[:200]!r}")

    async def _exchange(self, metadata: _Metadata, code: str, verifier: str, redirect_uri: str) -> _Tokens:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if self._secret and "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            pair = f"{quote(self._config.client_id, safe='')}:{quote(self._secret, safe='')}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            fields["client_id"] = self._config.client_id
            if self._secret:
                fields["client_secret"] = self._secret
        request = HttpRequest("POST", metadata.token_endpoint, headers, urlencode(fields).encode())
        tokens: _Tokens = _decode(await self._send(request), _Tokens, "the tokens")
        return tokens

    async def _get(self, url: str, headers: Mapping[str, str] | None = None) -> bytes:
        return await self._send(HttpRequest("GET", url, {"accept": "application/json", **(headers or {})}))

    async def _send(self, request: HttpRequest) -> bytes:
        """The body of a response with status 200; a redirect is not followed."""
        try:
            reply = await self._client.send(request, timeout_seconds=_TIMEOUT_SECONDS, max_bytes=_MAX_BYTES)
        except (NotSent, MaybeSent) as problem:
            raise SignInFailed("unreachable", f"{self.host} cannot be reached: {type(problem).__name__}") from None
        if reply.status != 200:
            code = "unreachable" if reply.status >= 500 else "failed"
            raise SignInFailed(code, f"{self.host} answered {request.method} with status {reply.status}")
        return bytes(reply.body)

    # ---------------------------------------------------------------------------------------------------- the token

    async def _check(self, metadata: _Metadata, token: str) -> dict[str, Any]:
        """The claims of a token that is signed by the issuer, for us and now: an ID token or a logout token."""
        import jwt  # an extra

        if len(token) > _MAX_TOKEN_CHARS:
            raise SignInFailed("failed", f"the token is longer than {_MAX_TOKEN_CHARS} characters")
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise SignInFailed("failed", f"the token has the algorithm {str(header.get('alg'))[:32]!r}")
            key, algorithm = await self._find_key(metadata, header.get("kid"))
            if algorithm not in (None, header["alg"]):
                raise SignInFailed("failed", f"the token has another algorithm than its key: {algorithm!r}")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                audience=self._config.client_id,
                issuer=metadata.issuer,
                leeway=SKEW_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as problem:
            clock = (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError)
            hint = f"; do the clocks differ by more than {SKEW_SECONDS} seconds?" if isinstance(problem, clock) else ""
            raise SignInFailed("failed", f"the token is refused: {problem}{hint}") from None
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self._config.client_id:
            raise SignInFailed("failed", "the token is for several audiences, and not issued to this client")
        return claims

    async def _find_key(self, metadata: _Metadata, kid: Any) -> Any:
        """The issuer's key with this id; one that is not known is asked for once a minute at most."""
        now = self._clock.monotonic()
        if now - self._keys_from > _METADATA_SECONDS:
            await self._read_keys(metadata)
        elif str(kid) not in self._keys and now - self._asked_again > _KEYS_AGAIN_SECONDS:
            self._asked_again = now
            await self._read_keys(metadata)
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if str(kid) not in self._keys:
            raise SignInFailed("failed", f"the token is signed with an unknown key: {str(kid)[:64]!r}")
        return self._keys[str(kid)]

    async def _read_keys(self, metadata: _Metadata) -> None:
        import jwt

        found = _decode(await self._get(metadata.jwks_uri), dict[str, Any], "its keys")
        keys: dict[str, Any] = {}
        for number, described in enumerate(found.get("keys") or ()):
            if isinstance(described, dict) and described.get("use", "sig") == "sig" and described.get("kty") != "oct":
                try:
                    key = jwt.PyJWK(described, algorithm=described.get("alg")).key
                    keys[str(described.get("kid", number))] = key, described.get("alg")
                except jwt.PyJWTError:
                    continue  # of a kind that is not used here
        self._keys = keys
        self._keys_from = self._clock.monotonic()

    async def _identity(self, metadata: _Metadata, claims: dict[str, Any], access_token: str) -> Identity:
        subject = claims["sub"]
        groups = claims.get(self._config.groups_claim)
        if groups is None and access_token and metadata.userinfo_endpoint and self._config.roles:
            bearer = {"authorization": f"Bearer {access_token}"}
            more = _decode(await self._get(metadata.userinfo_endpoint, bearer), dict[str, Any], "the user")
            if more.get("sub") != subject:
                raise SignInFailed("failed", "the issuer describes another user than the ID token")
            claims = {**more, **claims}
            groups = more.get(self._config.groups_claim)
        email = claims.get("email")
        return Identity(
            issuer=metadata.issuer,
            subject=_subject(claims),
            email=email.lower()[:320] if isinstance(email, str) and "@" in email else None,
            email_verified=claims.get("email_verified") is True or self._config.trust_email,
            name=str(claims["name"])[:200] if claims.get("name") else None,
            groups=_group_names(groups),
        )


def _subject(claims: Mapping[str, Any]) -> str:
    return str(claims["sub"])[:255]


def _group_names(groups: Any) -> frozenset[str]:
    """The groups of a claim: a list of names, or one name. Anything else gives none."""
    if isinstance(groups, str):
        return frozenset((groups,))
    listed = groups[:_MAX_GROUPS] if isinstance(groups, list) else []
    return frozenset(name for name in listed if isinstance(name, str))


def _decode(body: bytes, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as problem:
        raise SignInFailed("failed", f"{what} as the issuer sends it cannot be read: {problem}") from None
