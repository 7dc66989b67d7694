"""An issuer that lies in every way is not believed, and one that is down is named."""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from penstock.net.client import HttpClient
from penstock.people.configured import OidcConfig, RoleRule
from penstock.people.oidc import Identity, Issuer, Login, SignInFailed, new_login
from tests.manual_clock import ManualClock

jwt = pytest.importorskip("jwt", reason="needs the extra oidc")
from tests.fake_providers.issuer import CLIENT_ID, LOGOUT_EVENT, SECRET, FakeIssuer, fake_issuer  # noqa: E402 - needs the extra

REDIRECT = "https://media.example/auth/callback"
RULE = RoleRule(role="member", org="studio", group="media")


@asynccontextmanager
async def opened(secret: str = SECRET, **options: Any) -> AsyncIterator[tuple[FakeIssuer, Issuer, ManualClock]]:
    client, clock = HttpClient(), ManualClock()
    try:
        with fake_issuer() as fake:
            config = OidcConfig(issuer=fake.url, client_id=CLIENT_ID, roles=(RULE,), **options)
            yield fake, Issuer(client, clock, config, secret), clock
    finally:
        await client.close()


async def identify(fake: FakeIssuer, issuer: Issuer, **changes: str) -> Identity:
    login = new_login("/", 0)
    answer = fake.authorize(await issuer.sign_in_url(login, REDIRECT), REDIRECT)
    return await issuer.identify(login, {**answer, **changes}, REDIRECT)


async def test_who_came_back_is_known_by_issuer_and_subject() -> None:
    async with opened() as (fake, issuer, _):
        fake.claims = {"email": "Anna@Studio.example", "email_verified": True, "name": "Anna", "groups": ["media", 7]}
        found = await identify(fake, issuer)
        assert found == Identity(fake.url, "anna", "anna@studio.example", True, "Anna", frozenset({"media"}))
        fake.claims = {"email": "anna@studio.example", "groups": "media"}
        assert (await identify(fake, issuer))[3:] == (False, None, frozenset({"media"}))
        assert fake.calls.count("/keys") == 1, "keys are kept"


async def test_groups_that_are_not_in_the_token_are_asked_for() -> None:
    async with opened() as (fake, issuer, _):
        fake.userinfo = {"sub": "anna", "groups": ["media"], "email": "a@b.example"}
        found = await identify(fake, issuer)
        assert (found.groups, found.email) == (frozenset({"media"}), "a@b.example")
        fake.userinfo = {"sub": "somebody else", "groups": ["media"]}
        with pytest.raises(SignInFailed, match="another user"):
            await identify(fake, issuer)


def _pem(fake: FakeIssuer) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    made: bytes = fake.signing.public_key().public_bytes(serialization.Encoding.PEM, form)
    return made


def _segment(value: Any) -> str:
    return str(jwt.utils.base64url_encode(json.dumps(value).encode()).decode())


def _with_shared_secret(fake: FakeIssuer) -> Callable[[dict[str, Any]], str]:
    """Signed as with a shared secret, which is the public key."""

    def forge(claims: dict[str, Any]) -> str:
        key = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
        signed = f"{_segment({'alg': 'HS256', 'kid': fake.kid})}.{_segment(claims)}"
        return f"{signed}.{jwt.utils.base64url_encode(key.sign(signed.encode(), _pem(fake))).decode()}"

    return forge


def _with_own_key(fake: FakeIssuer) -> Callable[[dict[str, Any]], str]:
    """Signed with a key that the token itself brings along."""
    mine = ec.generate_private_key(ec.SECP256R1())
    described = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(mine.public_key()))
    return lambda claims: jwt.encode(claims, mine, algorithm="ES256", headers={"kid": fake.kid, "jwk": described})


def _unsigned(fake: FakeIssuer) -> Callable[[dict[str, Any]], str]:
    return lambda claims: f"{_segment({'alg': 'none', 'kid': fake.kid})}.{_segment(claims)}."


def _too_long(fake: FakeIssuer) -> Callable[[dict[str, Any]], str]:
    return lambda claims: fake.sign({**claims, "padding": "x" * 17_000})


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": "another client"}, "Audience"),
        ({"aud": [CLIENT_ID, "another client"]}, "several audiences"),
        ({"aud": [CLIENT_ID, "another client"], "azp": "another client"}, "several audiences"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"nonce": "of another sign-in"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"exp": int(time.time()) - 120}, "clocks"),
        ({"iat": int(time.time()) + 3600}, "clocks"),
        ({"exp": None}, "exp"),
        ({"sub": None}, "sub"),
    ],
)
async def test_a_token_for_others_or_of_another_time_is_refused(claims: dict[str, Any], reason: str) -> None:
    async with opened() as (fake, issuer, _):
        fake.claims = claims
        with pytest.raises(SignInFailed, match=reason):
            await identify(fake, issuer)


@pytest.mark.parametrize("lie", [_with_shared_secret, _with_own_key, _unsigned, _too_long])
async def test_a_token_that_the_issuer_did_not_sign_is_refused(
    lie: Callable[[FakeIssuer], Callable[[dict[str, Any]], str]],
) -> None:
    async with opened() as (fake, issuer, _):
        fake.forge = lie(fake)
        with pytest.raises(SignInFailed, match=r"algorithm|Signature|longer"):
            await identify(fake, issuer)


async def test_a_clock_that_differs_a_little_is_borne() -> None:
    async with opened() as (fake, issuer, _):
        now = int(time.time())
        fake.claims = {"exp": now - 30, "iat": now + 30}
        assert (await identify(fake, issuer)).subject == "anna"


async def test_unknown_keys_are_looked_for_once_a_minute_at_most() -> None:
    async with opened() as (fake, issuer, clock):
        await identify(fake, issuer)
        fake.kid, fake.signing = "second", ec.generate_private_key(ec.SECP256R1())
        assert (await identify(fake, issuer)).subject == "anna", "keys that the issuer has changed"
        for number in range(5):
            fake.header = {"kid": f"storm-{number}"}
            with pytest.raises(SignInFailed, match="unknown key"):
                await identify(fake, issuer)
        assert fake.calls.count("/keys") == 2
        clock.advance(61)
        with pytest.raises(SignInFailed, match="unknown key"):
            await identify(fake, issuer)
        assert fake.calls.count("/keys") == 3


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"state": "of somebody else"}, "expired"),
        ({"iss": "https://evil.example"}, "failed"),
        ({"error": "access_denied"}, "refused"),
        ({"code": ""}, "failed"),
        ({"code": "made up"}, "failed"),
    ],
)
async def test_an_answer_of_somebody_else_is_refused(changes: dict[str, str], code: str) -> None:
    async with opened() as (fake, issuer, _):
        with pytest.raises(SignInFailed) as caught:
            await identify(fake, issuer, **changes)
        assert caught.value.code == code


async def test_a_code_is_good_once_and_needs_its_verifier_and_the_secret() -> None:
    async with opened() as (fake, issuer, _):
        login = new_login("/", 0)
        answer = fake.authorize(await issuer.sign_in_url(login, REDIRECT), REDIRECT)
        stolen = Login(login.state, login.nonce, "another verifier", "/", 0)
        with pytest.raises(SignInFailed, match="400"):
            await issuer.identify(stolen, answer, REDIRECT)
        with pytest.raises(SignInFailed, match="400"):
            await issuer.identify(login, answer, REDIRECT)
    async with opened(secret="wrong") as (fake, issuer, _):
        with pytest.raises(SignInFailed, match="401"):
            await identify(fake, issuer)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"issuer": "https://evil.example"}, "is about the issuer"),
        ({"token_endpoint": "http://evil.example/token"}, "without https"),
        ({"jwks_uri": "file:///etc/passwd"}, "without https"),
        ({"token_endpoint": 7}, "cannot be read"),
        ({"padding": "x" * 100_000}, "cannot be reached"),
    ],
)
async def test_a_configuration_that_lies_is_refused(metadata: dict[str, Any], reason: str) -> None:
    async with opened() as (fake, issuer, _):
        fake.metadata = metadata
        with pytest.raises(SignInFailed, match=reason):
            await identify(fake, issuer)


async def test_an_issuer_that_is_down_or_redirects_is_named() -> None:
    async with opened() as (fake, issuer, _):
        fake.status = 503
        with pytest.raises(SignInFailed, match=r"127\.0\.0\.1 answered GET with status 503") as caught:
            await identify(fake, issuer)
        assert caught.value.code == "unreachable"
        fake.status, fake.redirects = 200, True
        with pytest.raises(SignInFailed, match="302"):
            await identify(fake, issuer)
    with pytest.raises(SignInFailed, match="cannot be reached"):
        await issuer.sign_in_url(new_login("/", 0), REDIRECT)


async def test_a_logout_token_names_a_person_and_until_when_sessions_end() -> None:
    async with opened() as (fake, issuer, _):
        found = await issuer.signed_out(fake.logout_token(sub="ben", iat=1_790_000_000, sid="of-one-browser"))
        assert found == ("ben", 1_790_000_060_000)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"events": None}, "no logout token"),
        ({"events": LOGOUT_EVENT}, "no logout token"),
        ({"events": {LOGOUT_EVENT: True}}, "no logout token"),
        ({"events": {"http://schemas.openid.net/event/another": {}}}, "no logout token"),
        ({"nonce": "as an ID token has"}, "no logout token"),
        ({"sub": None, "sid": "of-one-browser"}, "sub"),
        ({"aud": "another client"}, "Audience"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"exp": int(time.time()) - 120}, "clocks"),
        ({"exp": None}, "exp"),
    ],
)
async def test_any_other_token_signs_nobody_out(claims: dict[str, Any], reason: str) -> None:
    async with opened() as (fake, issuer, _):
        with pytest.raises(SignInFailed, match=reason):
            await issuer.signed_out(fake.logout_token(**claims))


@pytest.mark.parametrize("lie", [_with_shared_secret, _with_own_key, _unsigned, _too_long])
async def test_a_logout_token_that_is_not_of_the_issuer_signs_nobody_out(
    lie: Callable[[FakeIssuer], Callable[[dict[str, Any]], str]],
) -> None:
    async with opened() as (fake, issuer, _):
        claims = jwt.decode(fake.logout_token(), options={"verify_signature": False})
        with pytest.raises(SignInFailed):
            await issuer.signed_out(lie(fake)(claims))


async def test_a_logout_token_signs_nobody_in() -> None:
    async with opened() as (fake, issuer, _):
        fake.forge = lambda claims: fake.logout_token()
        with pytest.raises(SignInFailed, match="nonce"):
            await identify(fake, issuer)
