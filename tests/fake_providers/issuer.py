"""An OpenID Connect issuer on loopback that checks what a strict one checks, and lies where a test says so."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

CLIENT_ID = "penstock"
SECRET = "issuer-canary-5711"
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


@dataclass
class FakeIssuer:
    """What the issuer knows and how it lies."""

    url: str = ""
    signing: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    kid: str = "first"
    claims: dict[str, Any] = field(default_factory=dict)  # replace those of the token; None leaves one out
    metadata: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    redirects: bool = False
    forge: Callable[[dict[str, Any]], str] | None = None  # makes the ID token of the claims
    userinfo: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    pending: dict[str, dict[str, str]] = field(default_factory=dict)  # by code

    def authorize(self, url: str, redirect_uri: str) -> dict[str, str]:
        """What the browser brings back from the issuer's page, where somebody has signed in."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["redirect_uri"] == redirect_uri
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert asked["client_id"] == CLIENT_ID
        code = f"code-{len(self.pending)}"
        self.pending[code] = asked
        return {"code": code, "state": asked["state"], "iss": self.url}

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    def keys(self) -> dict[str, Any]:
        described = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.signing.public_key()))
        return {"keys": [{**described, "kid": self.kid, "alg": "ES256", "use": "sig"}]}

    def token(self, authorization: str, fields: dict[str, str]) -> tuple[int, dict[str, Any]]:
        pair = base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
        if authorization != f"Basic {pair}":
            return 401, {"error": "invalid_client"}
        asked = self.pending.pop(fields.get("code", ""), None)  # a code is good once
        digest = hashlib.sha256(fields.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or challenge != asked["code_challenge"] or fields["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        usual = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": "anna",
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
        }
        claims = {name: value for name, value in {**usual, **self.claims}.items() if value is not None}
        made = self.forge(claims) if self.forge else self.sign(claims)
        return 200, {"id_token": made, "access_token": "opaque", "token_type": "Bearer"}

    def logout_token(self, **changes: Any) -> str:
        """What the issuer sends when somebody is signed out there; None leaves a claim out."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": CLIENT_ID, "sub": "anna", "iat": now, "exp": now + 120, "jti": "one"}
        claims = {**usual, "events": {LOGOUT_EVENT: {}}, **changes}
        return self.sign({name: value for name, value in claims.items() if value is not None})

    def sign(self, claims: dict[str, Any]) -> str:
        return str(jwt.encode(claims, self.signing, algorithm="ES256", headers={"kid": self.kid, **self.header}))


def _handler(issuer: FakeIssuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.calls.append(self.path)
            found: dict[str, Callable[[], Any]] = {
                "/.well-known/openid-configuration": issuer.discovery,
                "/keys": issuer.keys,
                "/userinfo": lambda: {"sub": issuer.claims.get("sub", "anna"), **issuer.userinfo},
            }
            self._answer(issuer.status, found[self.path]())

        def do_POST(self) -> None:
            issuer.calls.append(self.path)
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            fields = {name: values[0] for name, values in parse_qs(body).items()}
            self._answer(*issuer.token(self.headers.get("authorization", ""), fields))

        def _answer(self, status: int, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(302 if issuer.redirects else status)
            self.send_header("location", f"{issuer.url}{self.path}")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def fake_issuer() -> Iterator[FakeIssuer]:
    issuer = FakeIssuer()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(issuer)) as server:
        issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
