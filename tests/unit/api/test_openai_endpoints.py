"""The table of OpenAI's endpoints says what the routes do, and a 404 names the path that was meant."""

from penstock.api.openai_endpoints import ENDPOINTS, PREFIX, explain_method, explain_missing, is_known_and_not_served
from penstock.api.routes import ROUTES

BASE = "http://gateway.test"


def has_route(method: str, path: str) -> bool:
    return any(
        route.path.startswith(PREFIX + path) and (not method or route.method == method)
        for route in ROUTES
        if route.path.removeprefix(PREFIX + path)[:1] in ("", "/")
    )


def test_every_endpoint_that_is_said_to_be_served_has_a_route_and_no_other_has() -> None:
    wrong = [row for row in ENDPOINTS if has_route(row.method, row.path) == (row.served == "no")]
    assert wrong == []


def test_every_compatible_route_is_in_the_table() -> None:
    paths = {route.path.removeprefix(PREFIX).partition("/{")[0] for route in ROUTES if route.path.startswith(PREFIX)}
    ours = {"/images", "/audio/generations", "/audio/models", "/audio/previews"}  # states of jobs, lists, and sounds
    assert paths - {row.path for row in ENDPOINTS} == ours


def test_paths_without_the_prefix_are_told_the_base_url() -> None:
    for path in ("/v1/models", "/v1/models/x", "/models", "/openai/v1/responses", "/api/v1/embeddings", "/v1/models/"):
        assert f"{BASE}/compat/v1" in explain_missing(path, BASE), path
    for path in ("/v1/nothing", "/nothing", "/", "", "/v1"):
        assert explain_missing(path, BASE) == "There is nothing at this path.", path


def test_paths_of_openai_that_are_not_served_say_why() -> None:
    assert "image" not in explain_missing("/compat/v1/nothing", BASE)
    assert "`audio/voice_consents`" in explain_missing("/compat/v1/audio/voice_consents", BASE)
    assert is_known_and_not_served("/compat/v1/images/variations")
    assert not is_known_and_not_served("/compat/v1/images/req_1")


def test_a_voice_of_ones_own_is_refused_with_the_reason() -> None:
    assert "samples of voices" in explain_method("POST", "/compat/v1/audio/voices")
    assert explain_method("PUT", "/compat/v1/audio/voices") == ""
    assert explain_method("POST", "/v1/balance") == ""
    assert "samples of voices" in explain_missing("/compat/v1/audio/voices/voice_1", BASE)
    assert "samples of voices" in explain_missing("/compat/v1/audio/voice_consents", BASE)
    assert not is_known_and_not_served("/compat/v1/audio/voices")


def test_paths_below_those_that_are_served_say_why_they_are_not() -> None:
    for path, word in (
        ("videos/characters", "input_reference"),
        ("videos/characters/char_1", "input_reference"),
        ("responses/resp_1", "conversations"),
        ("responses/resp_1/cancel", "conversations"),
        ("responses/input_tokens", "dryRun"),
        ("responses/compact", "compact"),
        ("chat/completions/chatcmpl_1", "conversations"),
        ("chat/completions/chatcmpl_1/messages", "conversations"),
    ):
        assert word in explain_missing(f"/compat/v1/{path}", BASE), path
    assert is_known_and_not_served("/compat/v1/videos/characters"), "not a video with this id"
