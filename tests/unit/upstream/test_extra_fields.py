"""A caller's extra fields: which are sent, which are refused, and that they change only the body."""

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidRequest
from penstock.providers import discover
from penstock.providers.row_names import INPUT_ROWS
from penstock.providers.spec import (
    Model,
    Price,
    Provider,
    Upload,
    bearer,
    converted,
    fixed,
    passthrough,
    renamed,
)
from penstock.upstream import checks, extra_fields, translate
from penstock.upstream.field_guesses import OWN_CHAT_FIELDS
from penstock.values import INPUT_VIDEOS, InputFile
from tests.unit.upstream.small_model import body, refusal, request, small_model

PLAIN = small_model(passthrough("prompt"))


def test_extras_are_sent_and_override_nothing() -> None:
    brush = small_model(passthrough("prompt"), renamed("user", "end_user"), fixed("safe", True))
    extras = {"background": "clear", "prompt": "stolen", "end_user": "stolen", "safe": False, "model": "stolen"}
    sent = body(brush, request("upscale", extras, prompt="mine", user="me"))
    assert sent == {"background": "clear", "prompt": "mine", "end_user": "me", "safe": True, "model": "brush-1"}


LOCATION_NAMES = """
    api_base base_url api_key api_token key token headers extra_headers extra_body proxy organization project webhook
    webhook_url webhook_events_filter callback callback_url callBackUrl notify_hook model_name endpoint url host stream
    API_BASE baseUrl webhook-url Authorization partial_images
"""


def test_extras_that_say_where_to_send_or_whom_to_call_are_refused() -> None:
    for name in LOCATION_NAMES.split():
        problem = refusal(PLAIN, request(extras={name: "https://evil.example"}))
        assert (problem.message, problem.param) == (f"`{name}` cannot be passed through to a provider.", name)


PRICED_NAMES = """
    num_images num_outputs numberOfImages sampleCount batch_size num_frames fps duration durationSeconds seconds
    max_images generate_audio service_tier width height image_size Num-Images megapixels n_images numVideos
    clips_count image_number inference_batch clip_duration video_seconds output_fps job_priority
"""


@pytest.mark.parametrize("name", ["dryRun", "dry_run", "dry-run"])
def test_a_dry_run_that_is_asked_for_in_the_body_makes_nothing(name: str) -> None:
    problem = refusal(PLAIN, request(extras={name: True}))
    assert (problem.param, "`?dryRun=true`" in problem.message) == (name, True)


def test_extras_that_change_the_price_are_refused() -> None:
    for name in PRICED_NAMES.split():
        problem = refusal(PLAIN, request(extras={name: 4}))
        assert problem.message == f"`{name}` would change the price; use the documented parameters."
        assert problem.param == name


@pytest.mark.parametrize(
    ("extras", "words"),
    [
        ({"parameters": {"sampleCount": 8}}, "`sampleCount` in `parameters` would change the price"),
        ({"steps": [{"more": [{"webhook": "x"}]}]}, "`webhook` in `steps` cannot be passed through"),
        ({"extra": {"headers": {}}}, "`headers` in `extra` cannot be passed through"),
    ],
)
def test_nested_extras_are_checked(extras: dict[str, Any], words: str) -> None:
    problem = refusal(PLAIN, request(extras=extras))
    assert problem.message.startswith(words)
    assert problem.param in extras


@pytest.mark.parametrize(
    "extras",
    [
        {"seed": 42, "guidance": 3.5, "loras": [{"path": "https://x.example/l", "scale": 1}]},
        {"reference": {"url": "https://x.example/p.png", "key": "face"}},  # ordinary words inside a nest
        {"background": None},
    ],
)
def test_other_extras_are_allowed(extras: dict[str, Any]) -> None:
    checks.check(PLAIN, request(extras=extras))


def test_a_provider_table_may_name_further_priced_extras() -> None:
    brush = small_model(passthrough("prompt"), priced_extras=frozenset({"mode"}))
    assert refusal(brush, request(extras={"mode": "pro"})).param == "mode"
    checks.check(PLAIN, request(extras={"mode": "pro"}))


def test_the_providers_name_of_a_field_that_decides_the_price_is_no_extra_field() -> None:
    """`scale_factor` is sent as `factor` and counted; a `factor` of the caller's own would be sent and not counted."""
    sent = converted("scale_factor", to="factor", convert=float)
    nested = converted("seconds", to="options.length", convert=float)
    by_style = replace(
        small_model(passthrough("prompt")), prices=(Price(unit="image", usd="1", when={"sent.look.style": "hd"}),)
    )
    for one, name in ((small_model(sent), "factor"), (small_model(nested), "options"), (by_style, "look")):
        for value in (6, "6", {"length": 60}):
            problem = refusal(one, request(extras={name: value}))
            assert problem.message == f"`{name}` is set from documented parameters; use those."
        checks.check(one, request(extras={"flavour": 6}))
    checks.check(
        small_model(sent, passthrough("factor")), request(extras={"factor": 6})
    )  # its own row says what it means


EDIT_VALUES: dict[str, Any] = {"prompt": "x", "n": 1, "images": [InputFile(b"pixels", "image/png", 1024, 1024)]}


def test_input_files_are_no_extras_where_they_are_billed() -> None:
    """Neither those that the operation takes in a row, nor those that other operations of the model take."""
    checked = []
    allowed = []
    for provider in discover():
        for model in provider.models:
            if model.op.task == "chat" or not any(Decimal(price.input_usd) for price in model.prices):
                continue
            rows = [row for other in provider.models if other.upstream == model.upstream for row in other.op.params]
            names = {name for row in rows if row.name in INPUT_ROWS for name in row.to}
            for name in names | sent_images(provider, model):
                if "." in name or name == "aspect_ratio" or model.op.param(name):
                    continue
                checked.append(name)
                with suppress(InvalidRequest):
                    extra_fields.check_extras(model, {name: "x"})
                    if translate.provider_body(model, EDIT_VALUES, {name: "x"}).get(name) == "x":
                        allowed.append((model.id, model.op.task, name))
    assert allowed == []
    assert {"input_image_2", "input_images", "image[]", "image_ref"} <= {*checked}


def test_input_files_are_no_extras_at_any_depth_and_under_any_name_where_they_are_billed() -> None:
    billed = replace(small_model(), prices=(Price(unit="image", usd="0.04", input_usd="0.01"),))
    free = replace(small_model(), prices=(Price(unit="image", usd="0.04"),))
    files: dict[str, dict[str, Any]] = {
        "inside an object": {"options": {"input_image": "x"}},
        "inside a list": {"guides": [{"weight": 1}, {"reference_images": ["x"]}]},
        "a URL under a name of its own": {"style": " https://files.test/a.png"},
        "a data URI in a list": {"faces": ["DATA:image/png;base64,iVBORw0KGgo"]},
        "an object of a bucket": {"guides": {"a": [{"b": "gs://bucket/a.png"}]}},
        "base64": {"style": "iVBORw0KGgo" * 30},
    }
    allowed = []
    for name, extras in files.items():
        extra_fields.check_extras(free, extras)
        with suppress(InvalidRequest):
            extra_fields.check_extras(billed, extras)
            allowed.append(name)
    assert allowed == []
    extra_fields.check_extras(
        billed, {"style": "a long text " * 100, "options": {"steps": 3, "names": ["a", None, 1.5]}}
    )


def test_extras_have_a_limited_number_of_different_names() -> None:
    """Each is compared with many patterns, for each candidate, while other calls wait."""
    image, chat = small_model(), small_model(task="chat")
    many = {f"k{number}": number for number in range(501)}
    for brush, extras in ((image, many), (image, {"options": [many]}), (chat, many)):
        with pytest.raises(InvalidRequest, match="500 different names"):
            extra_fields.check_extras(brush, extras)
    extra_fields.check_extras(image, {"nodes": [{"kind": number} for number in range(2000)]})
    extra_fields.check_extras(chat, {"functions": [{"parameters": many}]})


def sent_images(provider: Provider, model: Model) -> set[str]:
    """The fields of the bodies in which edits with a model send two images."""
    values = {**EDIT_VALUES, "images": EDIT_VALUES["images"] * 2}
    bodies = [
        translate.provider_body(other, values, {})
        for other in provider.models
        if (other.upstream, other.op.task) == (model.upstream, "edit")
    ]
    return {name for body in bodies for name, value in body.items() if has_file(value)}


def has_file(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(has_file, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Upload) or "cGl4ZWxz" in str(value)  # "pixels" in base64


def test_input_videos_are_no_extras() -> None:
    """A video that the gateway has not measured would be billed for its length, at the price of an edit."""
    names = {
        (model.id, name): model
        for provider in discover()
        for model in provider.models
        for row in model.op.params
        if row.name in INPUT_VIDEOS and model.op.takes_extras
        for name in row.to
        if "." not in name
    }
    allowed = []
    for (model_id, name), model in names.items():
        with suppress(InvalidRequest):
            extra_fields.check_extras(model, {name: [{"video_url": "https://files.test/a.mp4"}]})
            allowed.append((model_id, name))
    assert allowed == []
    assert ("kling-3-omni", "video_list") in names


def test_models_bill_input_files_in_all_their_operations_or_in_none() -> None:
    """Otherwise they would be extra fields of one operation, and not charged."""
    billed: dict[tuple[str, str], set[bool]] = {}
    for provider in discover():
        for model in provider.models:
            if model.op.task in ("image", "edit"):
                is_billed = any(Decimal(price.input_usd) for price in model.prices)
                billed.setdefault((provider.slug, model.upstream), set()).add(is_billed)
    assert [key for key, found in billed.items() if len(found) > 1] == []


def test_extras_with_a_row_in_the_table_are_allowed() -> None:
    brush = small_model(renamed("generate_audio", "audio", one_of=(True, False)), model_field=None)
    wanted = request("upscale", {"generate_audio": True})
    checks.check(brush, wanted)
    assert body(brush, wanted) == {"audio": True}
    assert refusal(brush, request(extras={"generate_audio": "loud"})).message.endswith(
        "must be one of `true`, `false`."
    )
    loud = small_model(renamed("generate_audio", "audio", one_of=(True,)), model_field=None)
    assert refusal(loud, request(extras={"generate_audio": False})).message.endswith("must be `true`.")


def test_chat_functions_may_have_parameters_with_any_names() -> None:
    chat = small_model(task="chat")
    extra_fields.check_extras(chat, {"functions": [{"parameters": {"duration": {}, "webhook": {}}}]})
    with pytest.raises(InvalidRequest):
        extra_fields.check_extras(chat, {"service_tier": "priority"})
    with pytest.raises(InvalidRequest):
        extra_fields.check_extras(chat, {"api_base": "https://evil.example"})


@pytest.mark.parametrize("name", ["enable_search", "plugins", "mcp_servers"])
def test_chats_may_say_that_they_want_nothing_beside_the_tokens(name: str) -> None:
    chat = small_model(task="chat")
    nothing: Any
    something: Any
    for nothing in (False, []):
        extra_fields.check_extras(chat, {name: nothing})
    for something in (True, {}, 0, ["x"], "off"):
        with pytest.raises(InvalidRequest, match="would change the price"):
            extra_fields.check_extras(chat, {name: something})


def nested(levels: int) -> dict[str, Any]:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return {"a": value}


def size_refusal(extras: dict[str, Any]) -> str:
    """The message with which extra fields are refused for their size, whatever the size of the body."""
    messages = set()
    for size_bytes in (0, 10**9):
        with pytest.raises(InvalidRequest) as caught:
            extra_fields.check_extras_size(extras, size_bytes)
        messages.add(caught.value.message)
    (message,) = messages
    return message


def test_deeply_nested_extras_are_refused() -> None:
    extra_fields.check_extras_size(nested(15), 0)
    assert size_refusal(nested(16)) == "Extra parameters may nest 16 levels at most."
    assert size_refusal(nested(900)) == "Extra parameters may nest 16 levels at most."


def test_large_extras_are_refused() -> None:
    extra_fields.check_extras_size({"a": "x" * 65_000}, 65_100)
    assert size_refusal({"a": "x" * 65_536}) == "Extra parameters may have 65536 bytes at most; `a` has most of them."
    assert size_refusal({"a": "é" * 40_000}) == "Extra parameters may have 65536 bytes at most; `a` has most of them."


@pytest.mark.parametrize("name", ["frame", "images"])
def test_internal_names_of_tables_cannot_be_used(name: str) -> None:
    brush = small_model(converted(name, to="x", convert=lambda found: found.width))
    assert refusal(brush, request("upscale", {name: "x"})).param == name
    assert body(brush, request("upscale", {name: "x"})) == {"model": "brush-1"}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=5))
def test_extras_change_only_the_body(extras: dict[str, Any]) -> None:
    provider = Provider(
        slug="lab", name="Lab", docs="", base_url="https://lab.example/v1", models=(), key_env="K", auth=bearer
    )
    fields = body(PLAIN, request(extras=extras, prompt="mine"))
    sent = translate.http_request(provider, PLAIN, fields, "key")
    assert (sent.method, sent.url) == ("POST", "https://lab.example/v1/make")
    assert sent.headers == {"authorization": "Bearer key", "content-type": "application/json"}
    sent_body = msgspec.json.decode(sent.whole_body)
    assert (sent_body["prompt"], sent_body["model"]) == ("mine", "brush-1")


def test_extra_fields_that_are_too_large_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """To walk through fifty thousand values takes a hundred times as long as to measure them."""
    monkeypatch.setattr(extra_fields, "_levels", lambda value: pytest.fail("was searched"))
    with pytest.raises(InvalidRequest, match="bytes at most"):
        extra_fields.check_extras_size({"extra": ["x"] * 50_000}, 200_000)


def test_names_and_levels_are_found_at_any_depth() -> None:
    value: Any = [{"a": [1, {"b": {"c": []}}]}, "d", {"e": None}]
    assert sorted(extra_fields._names(value)) == ["a", "b", "c", "e"]
    values: list[Any] = [value, {}, [[]], "x", 1]
    assert [extra_fields._depth(item) for item in values] == [6, 1, 2, 0, 0]


OUTPUT_LIMITS = """
    n_predict num_predict max_new_tokens max_output_tokens max_length max_gen_len max_tokens_to_sample min_tokens
    min_new_tokens min_length ignore_eos best_of num_beams num_return_sequences candidate_count previous_response_id
    conversation file_ids cached_content maxOutputTokens
""".split()
OTHERS = """
    id_slot lora grammar chat_template kv_transfer_params logits_processors keep_alive options t_max_predict_ms
    n_probs samplers guided_grammar structured_outputs whatever
""".split()


@pytest.mark.parametrize("name", OUTPUT_LIMITS)
def test_no_chat_may_set_its_limit_of_output_under_another_name(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"`{name}` would change the price"):
        extra_fields.check_extras(small_model(task="chat"), {name: 1})


@pytest.mark.parametrize("name", [*OUTPUT_LIMITS, *OTHERS])
def test_a_server_of_the_operators_own_gets_only_known_fields(name: str) -> None:
    own = replace(small_model(task="chat"), allowed_extras=OWN_CHAT_FIELDS)
    extra_fields.check_extras(own, {"top_k": 40, "min_p": 0.1, "chat_template_kwargs": {"enable_thinking": False}})
    with pytest.raises(InvalidRequest, match=f"`{name}`"):
        extra_fields.check_extras(own, {name: 1})


def test_the_operator_may_allow_more_fields_but_no_limit_of_output() -> None:
    own = replace(small_model(task="chat"), allowed_extras=OWN_CHAT_FIELDS | {"grammar", "n_predict"})
    extra_fields.check_extras(own, {"grammar": "root ::= [a-z]"})
    with pytest.raises(InvalidRequest, match="n_predict"):
        extra_fields.check_extras(own, {"n_predict": 50_000})
