"""Every path of the API: those of the compatible and of the native API, and the others here."""

from functools import cache

import msgspec

from penstock.api.compat_routes import COMPAT_ROUTES
from penstock.api.endpoints import (
    callbacks,
    files,
    health,
    metrics,
    pages,
    sign_in,
    votes,
)
from penstock.api.native_routes import NATIVE_ROUTES
from penstock.api.openapi.document import build_document
from penstock.api.route import Route
from penstock.gateway import Gateway
from penstock.generations import verify
from penstock.http_server.request_head import HEALTH_PATHS
from penstock.schema import Call, Response


async def openapi_document(gateway: Gateway, call: Call) -> Response:
    """Return the OpenAPI document of the routes below."""
    return Response(body=_document())


# fmt: off
ROUTES: tuple[Route, ...] = (
    *COMPAT_ROUTES,
    *NATIVE_ROUTES,

    # Files, by signed URL
    Route("GET", "/m/{media_id}", files.download_file, "Download a file", access="signed", query=files.FILE_QUERY, gives="file"),

    # Votes by the link of a trial
    Route("GET", "/vote", pages.vote_page, "The page on which people vote", access="open", gives="page"),
    Route("POST", "/vote/pair", votes.show_pair, "Show two outputs", access="signed", takes="json",
          fields=votes.PAIR_FIELDS, gives="Pair", is_vote=True),
    Route("POST", "/vote", votes.add_vote, "Vote on two outputs", access="signed", takes="json",
          fields=votes.VOTE_FIELDS, gives="Vote", is_vote=True),
    Route("GET", "/vote/files/{file}", votes.download_shown, "Download an output that was shown", access="signed",
          gives="file", is_vote=True),

    # Callbacks from providers, at URLs that the gateway gave them
    Route("POST", "/callbacks/{provider}/{token}", callbacks.receive_callback, "Accept a callback from a provider",
          access="signed", takes="raw", status=204),

    # Signing in with an issuer
    Route("GET", "/auth/options", sign_in.list_ways_to_sign_in, "List the ways to sign in", access="open",
          gives="SignIn"),
    Route("GET", "/auth/login", sign_in.begin_sign_in, "Go to the issuer to sign in", access="open",
          query=sign_in.LOGIN_QUERY, gives="redirect", status=302),
    Route("GET", "/auth/callback", sign_in.end_sign_in, "Come back from the issuer", access="open",
          gives="redirect", status=302),
    Route("POST", "/auth/backchannel-logout", sign_in.sign_out, "Sign out whom the issuer has signed out",
          access="signed", takes="raw", status=204),

    # The dashboard
    Route("GET", "/", pages.page, "The dashboard", access="open", gives="page"),
    Route("GET", "/dashboard/{file:path}", pages.page_part, "Styles and scripts of the dashboard", access="open", gives="page"),

    # The documentation
    Route("GET", "/docs", pages.manual_home, "The documentation", access="open", gives="page"),
    Route("GET", "/docs/{page:path}", pages.manual_page, "A page of the documentation, or a file of it", access="open", gives="page"),
    Route("GET", "/llms.txt", pages.llms_txt, "The pages of the documentation, for language models", access="open", gives="page"),
    Route("GET", "/llms-full.txt", pages.llms_full_txt, "The whole documentation in one text", access="open", gives="page"),

    # Files of anybody, where `public_verify` is set
    Route("GET", "/verify", pages.verify_page, "The page that verifies files of anybody", access="open", gives="page",
          is_public_verify=True),
    Route("POST", "/verify", verify.verify_for_anybody, "Verify a file without a key", access="open", takes="json or form",
          fields=verify.PUBLIC_FIELDS, gives="PublicVerification", is_public_verify=True),

    # The process itself
    Route("GET", "/healthz", health.alive, "Whether the process runs", access="open", gives="Health"),
    Route("GET", "/readyz", health.ready, "Whether it can take calls", access="open", gives="Health"),
    Route("GET", "/metrics", metrics.list_metrics, "Metrics for Prometheus", access="metrics", gives="text"),
    Route("GET", "/openapi.json", openapi_document, "This document", access="open", gives="Document"),
)
# fmt: on

# What a worker with a port serves.
WORKER_ROUTES = tuple(route for route in ROUTES if route.path in (*HEALTH_PATHS, "/metrics"))


@cache
def _document() -> bytes:
    return msgspec.json.encode(build_document(ROUTES))
