"""The tables of penstock.toml for providers, models and prices, and the message for each mistake."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.models import configured
from penstock.providers import openai_compatible
from penstock.providers.spec import Model, Price, Provider, Source, Speech, fixed
from penstock.typed_config import Misconfigured
from penstock.upstream import translate
from tests.providers.recordings import known_providers

LAB = """
[providers.lab]
speaks = "openai"
base_url = "https://lab.example/v1/"
key_env = "LAB_KEY"
"""
KNOWN = Provider(
    slug="fal",
    name="Fal",
    docs="",
    base_url="https://queue.fal.example",
    key_env="FAL_KEY",
    models=(Model(id="flux", upstream="fal-ai/flux", op=openai_compatible.IMAGE, prices=()),),
)


def read(text: str) -> dict[str, Provider]:
    written = tomllib.loads(text)["providers"]
    return {provider_read.slug: provider_read for provider_read in configured.providers({"fal": KNOWN}, written)}


def lab(models: str, head: str = LAB) -> Provider:
    return read(f"{head}\n{models}")["lab"]


# ------------------------------------------------------------------------------------------------------------ providers


def test_a_provider_of_the_operators_own() -> None:
    one = lab(
        """
        name = "The Lab"
        priority = 3
        [[providers.lab.models]]
        id = "lab/brush"
        task = "image"
        price = { unit = "image", usd = "0.04", source = "our contract" }
        [[providers.lab.models]]
        id = "video-1"
        upstream = "reel-2"
        task = "video"
        name = "Video"
        description = "Moves."
        priority = 1
        weight = 5
        aliases = ["movie"]
        enabled = false
        price = [{ unit = "second", usd = 1, when = { resolution = "1080p" } }, { unit = "second", usd = "0.5" }]
        """
    )
    assert (one.slug, one.name, one.base_url, one.key_env) == ("lab", "The Lab", "https://lab.example/v1", "LAB_KEY")
    assert one.auth("s3cr3t") == {"authorization": "Bearer s3cr3t"}
    assert one.models == (
        Model(
            on_own_server=True,
            id="lab/brush",
            upstream="brush",
            op=openai_compatible.IMAGE,
            prices=(Price(unit="image", usd="0.04", source=Source("our contract")),),
            priority=3,
        ),
        Model(
            on_own_server=True,
            id="video-1",
            upstream="reel-2",
            op=openai_compatible.VIDEO,
            name="Video",
            description="Moves.",
            priority=1,
            weight=5,
            aliases=("movie",),
            enabled=False,
            prices=(
                Price(unit="second", usd="1", when={"resolution": "1080p"}, source=Source("penstock.toml")),
                Price(unit="second", usd="0.5", source=Source("penstock.toml")),
            ),
        ),
    )


def test_a_provider_without_a_key_gets_no_authorization() -> None:
    one = lab("", '[providers.lab]\nspeaks = "openai"\nbase_url = "http://127.0.0.1:8000"')
    assert (one.name, one.key_env, one.auth("")) == ("lab", None, {})


def test_a_server_may_take_its_key_in_another_header_and_want_more_headers_and_parameters() -> None:
    one = lab(
        """
        auth = { header = "Api-Key", prefix = "Key " }
        headers = { X-Team = "studio 4", accept = "application/json" }
        query = { api-version = "2026-10-01", team = "a&b" }
        [[providers.lab.models]]
        id = "m"
        task = "image"
        """
    )
    request = translate.http_request(one, one.models[0], {"prompt": "a fox"}, "s3cr3t")
    assert request.url == "https://lab.example/v1/images/generations?api-version=2026-10-01&team=a%26b"
    assert request.headers == {
        "x-team": "studio 4",
        "accept": "application/json",
        "api-key": "Key s3cr3t",
        "content-type": "application/json",
    }


def test_a_server_whose_urls_cannot_be_used_is_asked_for_image_data() -> None:
    one = lab('[[providers.lab.models]]\nid = "lab/brush"\ntask = "image"\nasks_for_data = true')
    assert one.models[0].op.params == (*openai_compatible.IMAGE.params, fixed("response_format", "b64_json"))
    with pytest.raises(Misconfigured, match="asks_for_data is for models that make images"):
        lab('[[providers.lab.models]]\nid = "lab/reel"\ntask = "video"\nasks_for_data = true')


def test_chat_has_an_input_price_and_an_output_price() -> None:
    one = lab('models = [{id = "m", task = "chat", price = {unit = "token", input_usd = "1e-6", output_usd = "2e-6"}}]')
    assert one.models[0].prices == (Price(unit="token", usd="2e-6", input_usd="1e-6", source=Source("penstock.toml")),)


def test_chat_prices_may_depend_on_length_and_cached_tokens() -> None:
    one = lab(
        """
        [[providers.lab.models]]
        id = "m"
        task = "chat"
        price = [
          { unit = "token", usd = "4e-6", input_usd = "2e-6", above = 200000 },
          { unit = "token", usd = "2e-6", input_usd = "1e-6", other_usd = { cached = "1e-7" } },
        ]
        """
    )
    assert one.models[0].prices == (
        Price(unit="token", usd="4e-6", input_usd="2e-6", above=200_000, source=Source("penstock.toml")),
        Price(unit="token", usd="2e-6", input_usd="1e-6", other_usd={"cached": "1e-7"}, source=Source("penstock.toml")),
    )


def test_a_model_may_have_no_price() -> None:
    assert lab('models = [{id = "m", task = "image"}]').models[0].prices == ()


def test_known_providers_can_be_changed() -> None:
    changed = read(
        """
        [providers.fal]
        base_url = "https://proxy.example/fal"
        key_env = "OUR_FAL_KEY"
        models = [{id = "ours", task = "image", price = {unit = "image", usd = "0.1"}}]
        """
    )["fal"]
    assert (changed.base_url, changed.key_env, changed.name) == ("https://proxy.example/fal", "OUR_FAL_KEY", "Fal")
    assert [model.id for model in changed.models] == ["flux", "ours"]


def test_a_provider_can_be_said_to_have_the_responses_api_or_not() -> None:
    chat = 'models = [{id = "c", task = "chat"}, {id = "i", task = "image"}]'
    assert [model.op.responses for model in lab(f"responses = true\n{chat}").models] == ["POST /responses", None]
    assert {model.op.responses for model in lab(chat).models} == {None}
    known = known_providers()
    (vllm,) = configured.providers({"vllm": known["vllm"]}, {"vllm": {"responses": True}})
    assert [model.op.responses for model in vllm.models] == ["POST /v1/responses"]
    (openai,) = configured.providers({"openai": known["openai"]}, {"openai": {"responses": False}})
    assert {model.op.responses for model in openai.models} == {None}
    with pytest.raises(Misconfigured, match=r"providers\.fal\.responses is true, but this provider has no chat models"):
        configured.providers({"fal": known["fal"]}, {"fal": {"responses": True}}).__next__()


def test_a_base_url_replaces_the_one_of_the_environment() -> None:
    self_hosted = replace(KNOWN, base_url_env="FAL_URL")
    (changed,) = configured.providers({"fal": self_hosted}, {"fal": {"base_url": "http://10.0.0.8:8188"}})
    assert (changed.base_url, changed.base_url_env) == ("http://10.0.0.8:8188", None)
    (with_key,) = configured.providers({"fal": self_hosted}, {"fal": {"key_env": "OURS"}})
    assert with_key.base_url_env == "FAL_URL"


def added(slug: str, **table: Any) -> list[tuple[Model, str]]:
    """What a further model of a real provider becomes, each with the URL to which it is sent."""
    provider = known_providers()[slug]
    table = {"id": "house", "price": {"unit": "token" if table.get("task") == "chat" else "image", "usd": "1"}, **table}
    (changed,) = configured.providers({slug: provider}, {slug: {"models": [table]}})
    models = changed.models[len(provider.models) :]
    return [(model, translate.http_request(changed, model, {}, "").url) for model in models]


def test_a_further_model_is_called_as_another_one_of_the_provider() -> None:
    ((model, url),) = added("fal", like="flux-2-pro", task="image", upstream="fal-ai/flux-9-pro")
    known = next(each for each in known_providers()["fal"].models if each.id == "flux-2-pro")
    assert url == "https://queue.fal.run/fal-ai/flux-9-pro"
    assert (model.id, model.op, model.prices) == (
        "house",
        known.op,
        (Price(unit="image", usd="1", source=Source("penstock.toml")),),
    )
    both = added("bfl", like="flux-2-pro", upstream="flux-9-pro")
    assert [(model.op.task, url) for model, url in both] == [
        ("image", "https://api.bfl.ai/v1/flux-9-pro"),
        ("edit", "https://api.bfl.ai/v1/flux-9-pro"),
    ]


def test_a_further_model_needs_no_like_where_all_take_the_same_parameters() -> None:
    assert [url for _, url in added("vllm", task="chat", upstream="tiny")] == [
        "http://127.0.0.1:8000/v1/chat/completions"
    ]
    assert [url for _, url in added("groq", task="chat")] == ["https://api.groq.com/openai/v1/chat/completions"]


def test_new_versions_are_called_as_the_models_that_they_are_like() -> None:
    """The models of docs/configuration.md that have no table, because nothing describes them yet."""
    kling = [url for _, url in added("kling", like="kling-3-turbo", upstream="kling-4.0")]
    assert kling == [f"https://api-singapore.klingai.com/{kind}-to-video/kling-4.0" for kind in ("text", "image")]
    (flux,) = added("bfl", like="flux-3-video", upstream="flux-3-max-video")
    assert flux[1] == "https://api.bfl.ai/v1/flux-3-max-video"


WHERE = 'models["house"]'
CANNOT_WORK = {
    ("fal", "task"): f"providers.fal.{WHERE} needs like: the parameters of fal differ by model. It can be ",
    ("fal", "like"): f"providers.fal.{WHERE}.like is nonesuch; it must be a model that fal has here, such as ",
    (
        "fal",
        "other task",
    ): f"providers.fal.{WHERE}.task is video, which flux-2-pro of fal does not do; it can be image, edit",
    ("fal", "several"): f"providers.fal.{WHERE}.like is kling-3, which is several models there; it can be ",
    ("comfyui", "upstream"): (
        f"providers.comfyui.{WHERE}.upstream must be sd_xl_base_1.0.safetensors: ComfyUI runs nothing else there"
    ),
    ("groq", "task"): f"providers.groq.{WHERE}.task is image, for which Groq has no models here",
    ("groq", "nothing"): f"providers.groq.{WHERE} needs task or like",
    ("atelier", "task"): "providers.atelier answers inside the gateway and takes no other models",
}
TABLES = {
    "task": {"task": "image"},
    "like": {"like": "nonesuch"},
    "several": {"like": "kling-3"},
    "other task": {"like": "flux-2-pro", "task": "video"},
    "upstream": {"like": "comfyui/sdxl", "task": "image", "upstream": "mine.safetensors"},
    "nothing": {},
}


def test_a_further_model_that_cannot_work_is_refused_with_the_reason() -> None:
    for (slug, table), expected in CANNOT_WORK.items():
        with pytest.raises(Misconfigured) as caught:
            added(slug, **TABLES[table])
        assert str(caught.value).startswith(expected), slug


def test_a_version_at_the_end_of_a_url_is_not_sent_twice() -> None:
    for slug, url, expected in (
        ("vllm", "http://gpu.test:8000/v1", "http://gpu.test:8000"),
        ("ollama", "http://gpu.test:11434/v1/", "http://gpu.test:11434"),
        ("openai", "https://proxy.test/v1", "https://proxy.test/v1"),
    ):
        assert configured.with_base_url(known_providers()[slug], url).base_url == expected


def test_providers_without_a_table_are_unchanged() -> None:
    assert list(configured.providers({"fal": KNOWN}, {})) == [KNOWN]


# ------------------------------------------------------------------------------------------------------------- mistakes

MODEL = '[[providers.lab.models]]\nid = "m"\ntask = "image"\n'
PRICED = f"{LAB}{MODEL}price = "
LAST = "price: the last price must have no `when`, `above` and `from`; it is for all other calls"


TEXT = "must be text that is not empty"
URL = "must be http(s)://host[:port]/path"
NAMED = "must be named in lower-case letters, digits, - and _, and not router"
HEADER = "must be the name of a header: letters, digits and -"
ONE_LINE = "must be text in ASCII, on one line"
TASKS = "must be one of chat, edit, image, sound, speech, transcription, translation, upscale, video"
UNITS = (
    "must be one of byte, call, character, compute_second, frame, image, megapixel, megapixel_second, minute_started, "
    "second, started_megapixel, token, unit, video_megapixel"
)
AMOUNT = 'must be an amount of dollars as text, such as "0.04"'
M = 'providers.lab.models["m"]'

MISTAKES = {
    "providers.lab = 5": "providers.lab must be a table",
    "[providers.lab]\nspeeks = 1": "providers.lab has an unknown key: speeks (did you mean speaks?)",
    '[providers.lab]\nbase_url = "https://x.example"': "providers.lab needs speaks, which must be openai",
    '[providers.lab]\nspeaks = "openai"': f"providers.lab needs base_url, which {URL}",
    '[providers.lab]\nspeaks = "latin"\nbase_url = "https://x.example"': "providers.lab.speaks must be openai",
    '[providers.Lab]\nspeaks = "openai"': f"providers.Lab {NAMED}",
    '[providers."a/b"]\nspeaks = "openai"': f"providers.a/b {NAMED}",
    '[providers."é"]\nspeaks = "openai"': f"providers.é {NAMED}",
    '[providers.router]\nspeaks = "openai"': f"providers.router {NAMED}",
    '[providers.fal]\nspeaks = "openai"': "providers.fal has an unknown key: speaks",
    "[providers.fal]\nkey_env = 5": f"providers.fal.key_env {TEXT}",
    '[providers.fal]\nbase_url = "ftp://x"': f"providers.fal.base_url {URL}",
    LAB + "name = 5": f"providers.lab.name {TEXT}",
    LAB + 'name = " "': f"providers.lab.name {TEXT}",
    LAB + 'priority = "high"': "providers.lab.priority must be a whole number, at least 0",
    LAB + "models = 5": "providers.lab.models must be a list of tables",
    LAB + "[providers.lab.models]\nid = 1": "providers.lab.models must be a list of tables",
    LAB + 'models = ["m"]': "providers.lab.models[0] must be a table",
    LAB + 'models = [{task = "image"}]': f"providers.lab.models[0] needs id, which {TEXT}",
    LAB + 'models = [{id = 5, task = "image"}]': f"providers.lab.models[0].id {TEXT}",
    LAB + 'models = [{id = "m"}]': f"{M} needs task, which {TASKS}",
    LAB + 'models = [{id = "m", task = "song"}]': f"{M}.task {TASKS}",
    LAB + 'models = [{id = "m", tusk = "image"}]': f"{M} has an unknown key: tusk (did you mean task?)",
    LAB + "auth = 5": "providers.lab.auth must be a table",
    LAB + "auth = {}": f"providers.lab.auth needs header, which {HEADER}",
    LAB + 'auth = { header = "api key" }': f"providers.lab.auth.header {HEADER}",
    LAB + 'auth = { header = "Host" }': (
        "providers.lab.auth cannot use the header Host, which the gateway writes itself"
    ),
    LAB.replace("key_env", "name") + 'auth = { header = "api-key" }': "providers.lab needs key_env beside auth",
    LAB + 'headers = { Authorization = "Bearer x" }': (
        "providers.lab cannot set the header Authorization, which the gateway writes itself"
    ),
    LAB + 'headers = { "a:b" = "x" }': "providers.lab has a header whose name is not letters, digits and -",
    LAB + 'headers = { x-a = "x\\ny" }': f"providers.lab.headers must be a table; each value {ONE_LINE}",
    LAB + "query = { version = 5 }": f"providers.lab.query must be a table; each value {ONE_LINE}",
    LAB + MODEL + MODEL: "providers.lab describes a model twice: m (image)",
    LAB + MODEL + "upstream = 5": f"{M}.upstream {TEXT}",
    LAB + MODEL + "weight = 0": f"{M}.weight must be a whole number, at least 1",
    LAB + MODEL + "weight = 1.5": f"{M}.weight must be a whole number, at least 1",
    LAB + MODEL + "weight = true": f"{M}.weight must be a whole number, at least 1",
    LAB + MODEL + "priority = -1": f"{M}.priority must be a whole number, at least 0",
    LAB + MODEL + 'enabled = "no"': f"{M}.enabled must be true or false",
    LAB + MODEL + 'aliases = "other"': f"{M}.aliases must be a list of text",
    LAB + MODEL + "aliases = [1]": f"{M}.aliases[0] {TEXT}",
    PRICED + '"0.04"': f"{M}.price must be a table or a list of tables",
    PRICED + '{usd = "1"}': f"{M}.price needs unit, which {UNITS}",
    PRICED + '{unit = "hour", usd = "1"}': f"{M}.price.unit {UNITS}",
    PRICED + '{unit = "image"}': f"{M}.price needs usd or output_usd, and not both",
    PRICED + '{unit = "image", usd = "1", output_usd = "2"}': f"{M}.price needs usd or output_usd, and not both",
    PRICED + '[{unit = "image", usd = "1"}, {unit = "image"}]': f"{M}.price[1] needs usd or output_usd, and not both",
    PRICED + '{unit = "image", usd = "1", from = "2026-12-01"}': f"{M}.{LAST}",
    PRICED + '{unit = "image", usd = "1", from = "in May"}': f'{M}.price.from must be a date such as "2026-12-01"',
    PRICED + '{unit = "image", cents = 4}': f"{M}.price has an unknown key: cents",
    PRICED + '{unit = "image", usd = "1", when = 5}': f"{M}.price.when must be a table",
    PRICED + '{unit = "image", usd = "1", other_usd = "1"}': (
        f"{M}.price.other_usd must be a table; each value {AMOUNT}"
    ),
    PRICED + '{unit = "image", usd = "1", other_usd = {cached = 0.5}}': (
        f"{M}.price.other_usd must be a table; each value {AMOUNT}"
    ),
    PRICED + '[{unit = "image", usd = "1", above = 5}]': f"{M}.{LAST}",
    PRICED + '[{unit = "image", usd = "1", when = {size = "1:1"}}]': f"{M}.{LAST}",
    PRICED + '{unit = "image", usd = "1", max_tokens = -1}': f"{M}.price.max_tokens must be a whole number, at least 0",
    PRICED.replace("image", "edit") + '{unit = "token", usd = "1"}': (
        f"{M}.price needs `max_tokens` when tokens are counted: the most that one output can use"
    ),
}


def message(text: str) -> str:
    """The message about a file with a mistake."""
    with pytest.raises(Misconfigured) as caught:
        read(text)
    return str(caught.value)


def test_a_mistake_is_named_with_its_place_and_what_is_allowed() -> None:
    assert {text: message(text) for text in MISTAKES} == MISTAKES


def test_a_name_that_is_much_like_a_providers_is_taken_for_a_mistake() -> None:
    known = known_providers()
    with pytest.raises(Misconfigured, match=r"^there is no provider klign; did you mean kling\?"):
        list(configured.providers(known, {"klign": {"models": [{"id": "x", "like": "kling-4"}]}}))


def test_amounts_are_text_or_whole_and_within_limits() -> None:
    """0.04 without quotes is a float, which is not exactly what was written."""
    wrong = ["0.04", '"-1"', '"NaN"', '"Infinity"', '"four"', '""', '" "', '"1 "', "true", "-1", '"1e12"', "[1]"]
    for name in ("usd", "input_usd", "each_usd"):
        for amount in wrong:
            price = f'price = {{unit = "image", {name} = {amount}{"" if name == "usd" else ", usd = 1"}}}'
            assert message(LAB + MODEL + price) == f"{M}.price.{name} {AMOUNT}", amount


WRONG_URLS = """
    lab.example  //lab.example  https://  https://a@lab.example  https://:pw@lab.example  https://lab.example/?x=1
    https://lab.example/#x  https://lab.example/{model}  https://[::1  https://lab.example:port  file:///etc
    https://lab.example\\\\@evil.example  https://lab.example\\n
"""


def test_a_base_url_is_a_host_and_a_path_and_nothing_else() -> None:
    for url in ["", "https://lab example/", *WRONG_URLS.split()]:
        table = f'[providers.lab]\nspeaks = "openai"\nbase_url = "{url}"'
        assert message(table) == f"providers.lab.base_url {URL}", url


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:11434/v1", "https://lab.example", "http://[::1]:8000/v1", "http://llm_server/v1"]
)
def test_urls_that_are_allowed(url: str) -> None:
    assert lab("", f'[providers.lab]\nspeaks = "openai"\nbase_url = "{url}"').base_url == url


# -------------------------------------------------------------------------------------------------------------- changes


def changes(text: str) -> dict[str, Any]:
    known = {"flux": {"bfl", "fal"}, "fal/flux": {"fal"}}
    return dict(configured.changes(known, ("replicate/",), tomllib.loads(text)["models"]))


def test_models_can_be_changed() -> None:
    assert changes(
        """
        [models.flux]
        price = { unit = "image", usd = "0.1" }
        priority = 2
        weight = 3
        enabled = false
        aliases = ["other"]
        [models."fal/flux"]
        weight = 9
        """
    ) == {
        "flux": {
            "prices": (Price(unit="image", usd="0.1", source=Source("penstock.toml")),),
            "priority": 2,
            "weight": 3,
            "enabled": False,
            "aliases": ("other",),
        },
        "fal/flux": {"weight": 9},
    }


def test_mistakes_in_changes() -> None:
    mistakes = {
        "[models.flax]\nweight = 1": 'models["flax"] changes a model that no provider here has',
        "models.flux = 5": 'models["flux"] must be a table',
        '[models.flux]\nupstream = "x"': 'models["flux"].upstream: write it under models["PROVIDER/flux"]',
        "[models.flux]\ntask = 1": 'models["flux"] has an unknown key: task',
        "[models.flux]\nweight = 0": 'models["flux"].weight must be a whole number, at least 1',
        '[models.flux]\npriority = "x"': 'models["flux"].priority must be a whole number, at least 0',
        "[models.flux]\nenabled = 1": 'models["flux"].enabled must be true or false',
        "[models.flux]\nprice = 1": 'models["flux"].price must be a table or a list of tables',
        '[models.flux]\naliases = "x"': 'models["flux"].aliases must be a list of text',
    }
    for text, words in mistakes.items():
        with pytest.raises(Misconfigured) as caught:
            changes(text)
        assert str(caught.value) == words


# --------------------------------------------------------------------------------------------------------------- voices


def speaking(**table: Any) -> Speech:
    described = {"id": "kokoro", "task": "speech", "price": {"unit": "character", "usd": "0"}, **table}
    written = {"own": {"speaks": "openai", "base_url": "http://127.0.0.1:1/v1", "models": [described]}}
    (provider,) = configured.providers({}, written, Path())
    speech = provider.models[0].op.speech
    assert speech is not None
    return speech


def test_the_voices_of_an_own_server_speak_for_openais_names() -> None:
    speech = speaking(voices=["af_heart", "onyx"], openai_voices={"nova": "af_heart"})
    assert list(speech.voices) == ["af_heart", "onyx"]
    assert (speech.openai_voices["alloy"], speech.openai_voices["onyx"]) == ("af_heart", "onyx")
    assert speaking().openai_voices == {}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"openai_voices": {"bob": "x"}}, "and not bob"),
        ({"voices": ["a"], "openai_voices": {"alloy": "b"}}, "names b, which is not among voices"),
        ({"task": "image", "voices": ["a"], "price": {"unit": "image", "usd": "0"}}, "for models that speak"),
    ],
)
def test_voices_that_cannot_be_are_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        speaking(**table)
