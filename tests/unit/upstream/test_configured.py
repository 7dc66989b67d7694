"""penstock.toml: providers, models and prices in an operator's words, and what is said of each mistake."""

import tomllib
from dataclasses import replace
from typing import Any

import pytest

from penstock.providers import compatible
from penstock.providers.spec import Model, Price, Provider
from penstock.upstream import configured
from penstock.upstream.configured import Misconfigured

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
    models=(Model(id="flux", upstream="fal-ai/flux", op=compatible.IMAGE, prices=()),),
)


def read(text: str) -> dict[str, Provider]:
    written = tomllib.loads(text)["providers"]
    return {one.slug: one for one in configured.providers({"fal": KNOWN}, written)}


def lab(models: str, head: str = LAB) -> Provider:
    return read(f"{head}\n{models}")["lab"]


# ------------------------------------------------------------------------------------------------------------ providers


def test_an_endpoint_of_the_operators_own() -> None:
    one = lab(
        """
        name = "The Lab"
        priority = 3
        [[providers.lab.models]]
        id = "lab/brush"
        task = "image"
        price = { unit = "image", usd = "0.04", note = "our contract" }
        [[providers.lab.models]]
        id = "film"
        upstream = "reel-2"
        task = "video"
        name = "Film"
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
            id="lab/brush",
            upstream="brush",
            op=compatible.IMAGE,
            prices=(Price(unit="image", usd="0.04", note="our contract"),),
            priority=3,
        ),
        Model(
            id="film",
            upstream="reel-2",
            op=compatible.VIDEO,
            name="Film",
            description="Moves.",
            priority=1,
            weight=5,
            aliases=("movie",),
            enabled=False,
            prices=(
                Price(unit="second", usd="1", when={"resolution": "1080p"}, note="penstock.toml"),
                Price(unit="second", usd="0.5", note="penstock.toml"),
            ),
        ),
    )


def test_an_endpoint_without_a_key_gets_none() -> None:
    one = lab("", '[providers.lab]\nspeaks = "openai"\nbase_url = "http://127.0.0.1:8000"')
    assert (one.name, one.key_env, one.auth("")) == ("lab", None, {})


def test_chat_prices_have_two_sides() -> None:
    one = lab('models = [{id = "m", task = "chat", price = {unit = "token", input_usd = "1e-6", output_usd = "2e-6"}}]')
    assert one.models[0].prices == (Price(unit="token", usd="2e-6", input_usd="1e-6", note="penstock.toml"),)


def test_chat_prices_may_depend_on_length_and_on_what_is_remembered() -> None:
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
        Price(unit="token", usd="4e-6", input_usd="2e-6", above=200_000, note="penstock.toml"),
        Price(unit="token", usd="2e-6", input_usd="1e-6", other_usd={"cached": "1e-7"}, note="penstock.toml"),
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


def test_an_address_here_stands_for_the_one_in_the_environment() -> None:
    own = replace(KNOWN, base_url_env="FAL_URL")
    (placed,) = configured.providers({"fal": own}, {"fal": {"base_url": "http://10.0.0.8:8188"}})
    assert (placed.base_url, placed.base_url_env) == ("http://10.0.0.8:8188", None)
    (elsewhere,) = configured.providers({"fal": own}, {"fal": {"key_env": "OURS"}})
    assert elsewhere.base_url_env == "FAL_URL"


def test_what_is_not_named_stays_as_it_is() -> None:
    assert list(configured.providers({"fal": KNOWN}, {})) == [KNOWN]


# ------------------------------------------------------------------------------------------------------------- mistakes

MODEL = '[[providers.lab.models]]\nid = "m"\ntask = "image"\n'
PRICED = f"{LAB}{MODEL}price = "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("providers.lab = 5", "[providers.lab] must be a table"),
        ("[providers.lab]\nspeeks = 1", "[providers.lab] has unknown words: speeks"),
        ('[providers.lab]\nbase_url = "https://x.example"', '[providers.lab] must say speaks = "openai"'),
        ('[providers.lab]\nspeaks = "openai"', "[providers.lab] needs a base_url"),
        ('[providers.Lab]\nspeaks = "openai"', "[providers.Lab] must be named in lower-case letters"),
        ('[providers."a/b"]\nspeaks = "openai"', "[providers.a/b] must be named in lower-case letters"),
        ('[providers."é"]\nspeaks = "openai"', "[providers.é] must be named in lower-case letters"),
        ('[providers.router]\nspeaks = "openai"', "[providers.router] must be named"),
        ('[providers.fal]\nspeaks = "openai"', "[providers.fal] has unknown words: speaks"),
        ("[providers.fal]\nkey_env = 5", "[providers.fal]: key_env must be text"),
        ('[providers.fal]\nbase_url = "ftp://x"', "[providers.fal]: base_url must be http(s)://host[:port]/path"),
        (LAB + "name = 5", "[providers.lab]: name must be text"),
        (LAB + 'name = " "', "[providers.lab]: name must be text"),
        (LAB + 'priority = "high"', "[providers.lab]: priority must be a whole number from 0"),
        (LAB + "models = 5", "[providers.lab]: models must be a list of tables"),
        (LAB + "[providers.lab.models]\nid = 1", "[providers.lab]: models must be a list of tables"),
        (LAB + 'models = ["m"]', "[providers.lab], a model must be a table"),
        (LAB + 'models = [{task = "image"}]', "[providers.lab]: a model needs an id"),
        (LAB + 'models = [{id = 5, task = "image"}]', "[providers.lab]: id must be text"),
        (LAB + 'models = [{id = "m"}]', "[providers.lab] model m: task must be one of image, edit, "),
        (LAB + 'models = [{id = "m", task = "speech"}]', "[providers.lab] model m: task must be one of"),
        (LAB + 'models = [{id = "m", tusk = "image"}]', "[providers.lab], a model has unknown words: tusk"),
        (LAB + MODEL + MODEL, "[providers.lab]: described twice: m (image)"),
        (LAB + MODEL + "upstream = 5", "[providers.lab] model m: upstream must be text"),
        (LAB + MODEL + "weight = 0", "[providers.lab] model m: weight must be a whole number from 1"),
        (LAB + MODEL + "weight = 1.5", "[providers.lab] model m: weight must be a whole number from 1"),
        (LAB + MODEL + "weight = true", "[providers.lab] model m: weight must be a whole number from 1"),
        (LAB + MODEL + "priority = -1", "[providers.lab] model m: priority must be a whole number from 0"),
        (LAB + MODEL + 'enabled = "no"', "[providers.lab] model m: enabled must be true or false"),
        (LAB + MODEL + 'aliases = "other"', "[providers.lab] model m: aliases must be a list of names"),
        (LAB + MODEL + "aliases = [1]", "[providers.lab] model m: aliases must be a list of names"),
        (PRICED + '"0.04"', "[providers.lab] model m, price must be a table"),
        (PRICED + '{usd = "1"}', "[providers.lab] model m, price: unit must be one of image, megapixel"),
        (PRICED + '{unit = "image"}', "[providers.lab] model m, price needs usd or output_usd"),
        (PRICED + '{unit = "image", usd = "1", output_usd = "2"}', "[providers.lab] model m, price needs usd or"),
        (PRICED + '{unit = "image", cents = 4}', "[providers.lab] model m, price has unknown words: cents"),
        (PRICED + '{unit = "image", usd = "1", when = 5}', "[providers.lab] model m, price: when must be a table"),
        (PRICED + '{unit = "image", usd = "1", other_usd = "1"}',
         "[providers.lab] model m, price: other_usd must be a table"),
        (PRICED + '{unit = "image", usd = "1", other_usd = {cached = 0.5}}',
         "[providers.lab] model m, price: write amounts as text"),
        (PRICED + '[{unit = "image", usd = "1", above = 5}]', "[providers.lab] model m: the last price must be one"),
        (PRICED + '{unit = "image", usd = "1", most = -1}', "[providers.lab] model m, price: most must be a whole"),
        (PRICED.replace("image", "edit") + '{unit = "token", usd = "1"}',
         "[providers.lab] model m: a price by the token needs `most`, the tokens one output can use"),
        (PRICED + '[{unit = "image", usd = "1", when = {size = "1:1"}}]',
         "[providers.lab] model m: the last price must be one without `when` and `above`, for all other cases"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        read(text)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("usd", ["0.04", '"-1"', '"NaN"', '"Infinity"', '"four"', '""', "true", "-1", '"1e12"', "[1]"])
@pytest.mark.parametrize("name", ["usd", "input_usd", "each_usd"])
def test_amounts_are_text_and_sensible(name: str, usd: str) -> None:
    """0.04 without quotes is a float, which is not what was written."""
    price = f'price = {{unit = "image", {name} = {usd}{"" if name == "usd" else ", usd = 1"}}}'
    with pytest.raises(Misconfigured, match=r'write amounts as text, such as "0\.04"'):
        read(LAB + MODEL + price)


@pytest.mark.parametrize(
    "address",
    ["lab.example", "//lab.example", "https://", "https://a@lab.example", "https://:pw@lab.example", "https://lab.example/?x=1",
     "https://lab.example/#x", "https://lab.example/{model}", "https://lab example/", "https://[::1", "https://lab.example:port",
     "file:///etc", "https://lab.example\\\\@evil.example", ""],
)  # fmt: skip
def test_44_a_base_url_is_an_address_and_nothing_else(address: str) -> None:
    with pytest.raises(Misconfigured, match="base_url must be"):
        read(f'[providers.lab]\nspeaks = "openai"\nbase_url = "{address}"')


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:11434/v1", "https://lab.example", "http://[::1]:8000/v1", "http://llm_server/v1"]
)
def test_addresses_that_are_fine(address: str) -> None:
    assert lab("", f'[providers.lab]\nspeaks = "openai"\nbase_url = "{address}"').base_url == address


# -------------------------------------------------------------------------------------------------------------- changes


def changes(text: str) -> dict[str, Any]:
    return dict(configured.changes({"flux", "fal/flux"}, tomllib.loads(text)["models"]))


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
            "prices": (Price(unit="image", usd="0.1", note="penstock.toml"),),
            "priority": 2,
            "weight": 3,
            "enabled": False,
            "aliases": ("other",),
        },
        "fal/flux": {"weight": 9},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[models.flax]\nweight = 1", '[models."flax"] changes a model that no provider here has'),
        ("models.flux = 5", '[models."flux"] must be a table'),
        ("[models.flux]\ntask = 1", '[models."flux"] has unknown words: task'),
        ("[models.flux]\nweight = 0", '[models."flux"]: weight must be a whole number from 1'),
        ('[models.flux]\npriority = "x"', '[models."flux"]: priority must be a whole number from 0'),
        ("[models.flux]\nenabled = 1", '[models."flux"]: enabled must be true or false'),
        ("[models.flux]\nprice = 1", '[models."flux"], price must be a table'),
        ('[models.flux]\naliases = "x"', '[models."flux"]: aliases must be a list of names'),
    ],
)
def test_mistakes_in_changes(text: str, words: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        changes(text)
    assert str(caught.value).startswith(words)
