"""Sign people in and out with an issuer, or in through a proxy, and let their sessions change the organization."""

from collections.abc import Awaitable
from urllib.parse import parse_qsl, quote

import structlog

from penstock.api import query
from penstock.api.cookies import cookie_name, read_cookie, set_cookie
from penstock.api.fields import checked_fields
from penstock.api.responses import NO_STORE
from penstock.api.route import Query
from penstock.audit_log import Actor, act_as
from penstock.errors import InvalidRequest, NotFound
from penstock.fields import field_table, text_field
from penstock.gateway import Gateway
from penstock.people.oidc import SignInFailed
from penstock.people.proxy_sign_in import ProxySignIn
from penstock.people.sessions import NewSession
from penstock.people.sign_in import LOGIN_SECONDS, SignIn
from penstock.schema import Call, Response
from penstock.values import OrgId

log = structlog.get_logger()
LOGIN_QUERY = (
    Query(name="next", default="/", about="Page of this gateway to show afterwards."),
    Query(name="invitation", default="", about="The text of an invitation, from its link."),
)
ORG_FIELDS = field_table(text_field("org_id", "Id of the organization.", required=True))
_CALLBACK = "/auth/callback"
_MAX_FORM_FIELDS = 10


async def list_ways_to_sign_in(gateway: Gateway, call: Call) -> Response:
    """Return what the sign-in page offers."""
    sign_in = gateway.sign_in
    button = {"button": sign_in.config.button} if sign_in else None
    is_proxy = isinstance(sign_in, ProxySignIn)
    return Response(
        json={
            "object": "sign_in",
            "key": sign_in is None or sign_in.config.key_sign_in,
            "oidc": None if is_proxy else button,
            "proxy": button if is_proxy else None,
        }
    )


async def begin_sign_in(gateway: Gateway, call: Call) -> Response:
    """Send the browser to the issuer; behind a proxy that signs people in, begin the session at once."""
    sign_in = _sign_in(gateway)
    asked = query.read(LOGIN_QUERY, call.query)
    try:
        if isinstance(sign_in, ProxySignIn):
            return _entered(call, *await _enter(sign_in, call, asked["next"], asked["invitation"]))
        url, cookie = await sign_in.begin(asked["next"], call.base_url + _CALLBACK, asked["invitation"])
    except SignInFailed as problem:
        return _refused(sign_in, call, problem)
    headers = set_cookie(_login_cookie(call), cookie, call.base_url, LOGIN_SECONDS)
    return Response(status=302, headers={**headers, "location": url})


async def end_sign_in(gateway: Gateway, call: Call) -> Response:
    """Take back the browser from the issuer, and begin the session."""
    sign_in = _sign_in(gateway)
    if isinstance(sign_in, ProxySignIn):
        raise NotFound("Nobody comes back from an issuer here: people sign in through a proxy.")
    cookie = read_cookie(call.headers, _login_cookie(call))
    agent = call.headers.get("user-agent", "")
    try:
        new, page = await sign_in.end(cookie, call.query, call.base_url + _CALLBACK, call.address, agent)
    except SignInFailed as problem:
        return _refused(sign_in, call, problem)
    return _entered(call, new, page)


async def sign_out(gateway: Gateway, call: Call) -> Response:
    """End the sessions of a person whom the issuer has signed out."""
    sign_in = _sign_in(gateway)
    if isinstance(sign_in, ProxySignIn):
        raise NotFound("No issuer signs anybody out here: people sign in through a proxy.")
    act_as(Actor("sign-in", call.address, call.id))
    try:
        await sign_in.sign_out(_logout_token(call))
    except SignInFailed as problem:
        log.warning("sign-out refused", request_id=call.id, code=problem.code, reason=str(problem))
        message = "`logout_token` must be a logout token of the issuer, with a `sub`. The log says what is wrong."
        raise InvalidRequest(message, param="logout_token") from None
    return Response(status=204, headers=NO_STORE)


def _logout_token(call: Call) -> str:
    """The token in the form of a call. Raises InvalidRequest."""
    try:
        fields = dict(parse_qsl(bytes(call.body).decode(), max_num_fields=_MAX_FORM_FIELDS))
        return fields["logout_token"]
    except (ValueError, KeyError):
        message = "The body must be a form, application/x-www-form-urlencoded, with the field `logout_token`."
        raise InvalidRequest(message, param="logout_token") from None


async def move_session(gateway: Gateway, call: Call) -> Response:
    """Let the session act in another organization of the person."""
    await gateway.users.move(call.caller, OrgId(checked_fields(call.json, ORG_FIELDS)["org_id"]))
    return Response(status=204)


def _enter(sign_in: ProxySignIn, call: Call, next_page: str, invitation: str) -> Awaitable[tuple[NewSession, str]]:
    """The session of the person in the headers of the call, and the page to show."""
    return sign_in.enter(
        call.headers,
        is_proxied=call.line.is_proxied,
        next_page=next_page,
        invitation=invitation,
        address=call.address,
        agent=call.headers.get("user-agent", ""),
    )


def _entered(call: Call, new: NewSession, page: str) -> Response:
    """To the page, with the cookie of the session that has begun."""
    headers = set_cookie(cookie_name(call.base_url), new.token, call.base_url, new.seconds)
    return Response(status=302, headers={**headers, "location": page})


def _sign_in(gateway: Gateway) -> SignIn | ProxySignIn:
    if gateway.sign_in is None:
        raise NotFound("People sign in with keys here: penstock.toml has no table `oidc` or `proxy_sign_in`.")
    return gateway.sign_in


def _login_cookie(call: Call) -> str:
    return f"{cookie_name(call.base_url)}-login"


def _refused(sign_in: SignIn | ProxySignIn, call: Call, problem: SignInFailed) -> Response:
    """Back to the sign-in page, which says why in its own words; the log has the details."""
    log.warning("sign-in refused", request_id=call.id, code=problem.code, reason=str(problem))
    host = ""
    if isinstance(sign_in, SignIn) and problem.code in ("unreachable", "refused"):
        host = f"&issuer={quote(sign_in.host)}"
    return Response(status=302, headers={**NO_STORE, "location": f"/#/?refused={problem.code}{host}"})
