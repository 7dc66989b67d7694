"""Which providers serve a model, and the errors for models that cannot be used."""

from dataclasses import replace

import pytest

from penstock.errors import InvalidRequest, ModelDisabled, ModelNotFound
from penstock.models.catalog import Catalog, Found
from penstock.providers import discover
from penstock.schema import PlannedCandidate
from penstock.settings import Settings
from penstock.typed_config import Misconfigured
from penstock_atelier.table import PROVIDER as ATELIER
from tests.unit.models.small_catalog import CHAT, EDIT, IMAGE, ONE, ROUTER, TWO, VIDEO, catalog, model, provider


def find(known: Catalog, name: str, tasks: tuple[str, ...] = IMAGE) -> Found:
    return known.find(name, tasks)


def slugs(found: Found) -> list[str]:
    return [candidate.provider.slug for candidate in found.candidates]


# -------------------------------------------------------------------------------------------------------- active or not


def test_a_provider_is_active_if_its_credential_is_set() -> None:
    assert set(slugs(find(catalog(), "fox"))) == {"one", "two"}
    assert slugs(find(catalog(environ={}), "fox")) == ["two"]
    assert slugs(find(catalog(environ={"ONE_KEY": ""}), "fox")) == ["two"]
    assert slugs(find(catalog(disabled_providers=("two",)), "fox")) == ["one"]


def test_candidates_have_the_key_of_their_provider_and_do_not_show_it() -> None:
    candidates = {candidate.provider.slug: candidate for candidate in find(catalog(), "fox").candidates}
    assert (candidates["one"].key, candidates["two"].key) == ("s3cr3t", "")
    assert "s3cr3t" not in repr(candidates["one"])


def test_only_chat_on_a_server_of_the_operators_own_has_a_list_of_extra_fields() -> None:
    """Also at another provider's name, where the operator says that it is at an address of their network."""
    written = {
        "here": {
            "speaks": "openai",
            "base_url": "http://127.0.0.1:1",
            "extra_fields": ["grammar"],
            "models": [{"id": "a", "task": "chat"}, {"id": "b", "task": "image"}],
        },
        "vllm": {"base_url": "https://models.example"},
        "openai": {"base_url": "http://10.0.0.1:8000"},
    }
    settings = Settings(providers=written, unknown_prices="flag")
    keys = {"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}
    found = Catalog(discover(), settings, keys)

    def allowed(name: str, tasks: tuple[str, ...] = CHAT) -> frozenset[str] | None:
        return found.find(name, tasks).candidates[0].model.allowed_extras

    assert {"grammar", "top_k"} <= (allowed("here/a") or set())
    assert allowed("here/b", IMAGE) is None
    assert "top_k" in (allowed("vllm/any") or set())
    assert "top_k" in (allowed("openai/gpt-5.1") or set())
    assert "grammar" not in (allowed("vllm/any") or set())
    assert allowed("groq/openai/gpt-oss-20b") is None


def test_the_environment_gives_the_url_of_a_self_hosted_provider() -> None:
    comfy = provider("comfy", model("fox"), base_url_env="COMFY_URL")
    (candidate,) = find(catalog(comfy, environ={"COMFY_URL": "http://10.0.0.7:8188/"}), "fox").candidates
    assert candidate.provider.base_url == "http://10.0.0.7:8188"
    with pytest.raises(ModelNotFound):
        find(catalog(comfy, environ={}), "fox")


def test_a_provider_of_the_settings_is_a_candidate() -> None:
    lab = {"speaks": "openai", "base_url": "https://lab.example", "models": [
        {"id": "fox", "task": "image", "price": {"unit": "image", "usd": "1"}, "priority": 5}]}  # fmt: skip
    assert slugs(find(catalog(providers={"lab": lab}), "fox"))[-1] == "lab"


# ---------------------------------------------------------------------------------------------------------------- order


# ---------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "executed", "forced"),
    [
        ("fox", {"one/fox-v1", "two/acme/fox"}, False),
        ("vulpes", {"one/fox-v1"}, False),  # an alias
        ("one/fox-v1", {"one/fox-v1"}, True),  # the provider's own id, slashes and all
        ("two/acme/fox", {"two/acme/fox"}, True),
        ("one/fox", {"one/fox-v1"}, True),  # a public id behind a provider
        ("one/vulpes", {"one/fox-v1"}, True),
        ("two/own", {"two/two/own"}, True),  # a public id that names its only provider
        ("two/two/own", {"two/two/own"}, True),
    ],
)
def test_names_of_a_model(name: str, executed: set[str], forced: bool) -> None:
    found = find(catalog(), name)
    assert {candidate.executed_model for candidate in found.candidates} == executed
    assert found.forced is forced


@pytest.mark.parametrize("name", ["two/fox-v1", "one/", "/fox", "one", "FOX", " fox", "one/one/fox", "hub/*", "*", ""])
def test_names_of_no_model(name: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        find(catalog(ONE, TWO, ROUTER), name)
    assert caught.value.param == "model"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("foxx", "The model `foxx` does not exist. Did you mean `fox`?"),
        ("zzzzzzzz", "The model `zzzzzzzz` does not exist."),
        ("old-fox", "The model `old-fox` was retired; use `fox`."),
    ],
)
def test_the_error_proposes_the_nearest_model(name: str, words: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        find(catalog(), name)
    assert caught.value.message == words
    with pytest.raises(ModelNotFound) as caught:
        catalog().describe(name)
    assert caught.value.message == words


def test_the_error_proposes_a_model_of_the_same_task() -> None:
    assert "`video-1`" in catalog().not_found("vido-1", ("video",)).message
    assert "Did you mean" not in catalog().not_found("vido-1", ("chat",)).message


def test_the_error_proposes_no_model_that_cannot_be_used() -> None:
    known = catalog(provider("one", model("foxes", enabled=False), model("foxy/*", "chat", "*"), model("dove")))
    with pytest.raises(ModelNotFound, match=r"does not exist\.$"):
        find(known, "foxy")


@pytest.mark.parametrize(
    ("name", "tasks", "words"),
    [
        ("video-1", IMAGE, "`video-1` does not support image generation; it supports image-to-video, text-to-video."),
        ("fox", VIDEO, "`fox` does not support video generation; it supports text-to-image."),
        ("fox", EDIT, "`fox` does not support image edits; it supports text-to-image."),
        ("fox", CHAT, "`fox` does not support chat; it supports text-to-image."),
    ],
)
def test_a_task_that_the_model_does_not_support(name: str, tasks: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        find(catalog(), name, tasks)
    assert (caught.value.message, caught.value.param, caught.value.code) == (words, "model", "INVALID_REQUEST")


def test_one_id_may_serve_several_tasks() -> None:
    both = catalog(provider("one", model("fox"), model("fox", "edit", "fox-edit")))
    assert [candidate.model.upstream for candidate in find(both, "fox").candidates] == ["fox"]
    assert [candidate.model.upstream for candidate in find(both, "fox", EDIT).candidates] == ["fox-edit"]
    assert both.describe("fox")["modes"] == ["text-to-image", "image-edit"]


# -------------------------------------------------------------------------------------------------------------- changes


def test_models_can_be_switched_off() -> None:
    known = catalog(models={"fox": {"enabled": False}})
    with pytest.raises(ModelDisabled, match="`fox` is switched off on this gateway"):
        find(known, "fox")
    with pytest.raises(ModelDisabled):
        known.describe("fox")
    assert "fox" not in [listed_model["id"] for listed_model in known.describe_all()]


def test_changes_apply_to_all_providers_of_a_model_or_to_one() -> None:
    known = catalog(models={"fox": {"priority": 7}, "two/fox": {"priority": 1, "enabled": True}})
    priorities = {candidate.provider.slug: candidate.model.priority for candidate in find(known, "fox").candidates}
    assert priorities == {"one": 7, "two": 1}
    assert slugs(find(catalog(models={"one/fox": {"enabled": False}}), "fox")) == ["two"]
    assert slugs(find(catalog(models={"fox": {"aliases": ["reynard"]}}), "reynard"))


def test_a_model_may_have_another_name_at_one_provider() -> None:
    known = catalog(models={"two/fox": {"upstream": "deployed-fox"}})
    names = {candidate.provider.slug: candidate.model.upstream for candidate in find(known, "fox").candidates}
    assert names["two"] == "deployed-fox"
    assert names["one"] != "deployed-fox"
    assert slugs(find(known, "two/deployed-fox")) == ["two"]


def test_a_change_of_an_unknown_model_is_refused() -> None:
    with pytest.raises(Misconfigured, match="changes a model that no provider here has"):
        catalog(models={"wolf": {"weight": 2}})


def test_a_change_of_a_model_of_an_inactive_provider_is_allowed() -> None:
    assert slugs(find(catalog(environ={}, models={"video-1": {"weight": 2}}), "fox")) == ["two"]


def test_a_model_without_a_price_is_refused_unless_flagged() -> None:
    free = provider("one", model("gratis", prices=()))
    with pytest.raises(ModelDisabled, match="no price is configured for it"):
        find(catalog(free), "gratis")
    assert catalog(free).describe_all() == []
    assert slugs(find(catalog(free, unknown_prices="flag"), "gratis")) == ["one"]
    priced = catalog(free, models={"gratis": {"price": {"unit": "image", "usd": "0"}}})
    assert slugs(find(priced, "gratis")) == ["one"]


# ----------------------------------------------------------------------------------------------------------- the router


@pytest.mark.parametrize(
    ("name", "executed", "forced"),
    [
        ("acme/parrot", "hub/acme/parrot", False),
        ("router/acme/parrot", "hub/acme/parrot", False),
        ("acme/parrot:free", "hub/acme/parrot:free", False),
        ("hub/acme/parrot", "hub/acme/parrot", True),
        ("hub/named", "hub/named", True),
        ("router/hub/named", "hub/named", True),
    ],
)
def test_chat_models_that_no_provider_lists_go_to_the_router(name: str, executed: str, forced: bool) -> None:
    found = find(catalog(ONE, ROUTER, router="hub"), name, CHAT)
    assert [candidate.executed_model for candidate in found.candidates] == [executed]
    assert found.forced is forced


@pytest.mark.parametrize(
    ("name", "router"), [("parrot", "hub"), ("router/parrot", "hub"), ("acme/parrot", "elsewhere")]
)
def test_names_that_the_router_cannot_serve(name: str, router: str) -> None:
    with pytest.raises(ModelNotFound):
        find(catalog(ONE, ROUTER, router=router), name, CHAT)


def test_the_router_serves_only_chat() -> None:
    with pytest.raises(ModelNotFound):
        find(catalog(ONE, ROUTER, router="hub"), "acme/fox", IMAGE)
    with pytest.raises(InvalidRequest, match="`router/fox` does not support chat"):
        find(catalog(ONE, ROUTER, router="hub"), "router/fox", CHAT)


def test_the_routers_named_models_are_listed_and_its_wildcard_is_not() -> None:
    assert [listed_model["id"] for listed_model in catalog(ROUTER, router="hub").describe_all()] == ["hub/named"]


# --------------------------------------------------------------------------------------------------------------- others


def test_a_planned_candidate_is_found_again_while_it_exists() -> None:
    choice = PlannedCandidate("one", "fox", "fox-v1")
    assert catalog().find_candidate(choice, "image") == find(catalog(), "one/fox").candidates[0]
    assert catalog(environ={}).find_candidate(choice, "image") is None


def test_a_planned_candidate_is_found_among_models_of_one_name() -> None:
    """A model may generate and edit, and have one endpoint for text-to-video and another for image-to-video."""
    from_text, from_image = model("fox", "video", "v1"), model("fox", "video", "v1")
    from_image = replace(from_image, op=replace(from_image.op, send="POST /moves"))
    found = catalog(provider("one", model("fox", "image", "v1"), model("fox", "edit", "v1"), from_text, from_image))
    for task in ("image", "edit"):
        candidate = found.find_candidate(PlannedCandidate("one", "fox", "v1"), task)
        assert candidate is not None
        assert candidate.model.op.task == task
    for variant in (from_text, from_image):
        candidate = found.find_candidate(PlannedCandidate("one", "fox", "v1", send=variant.op.send), "video")
        assert candidate is not None
        assert candidate.model == variant
    assert found.find_candidate(PlannedCandidate("one", "fox", "v1"), "upscale") is None


def test_mocks_also_serve_models_of_inactive_providers() -> None:
    assert slugs(catalog(environ={}).find_known("video-1", VIDEO)) == ["one"]
    with pytest.raises(ModelNotFound):
        catalog().find_known("wolf", IMAGE)
    mocks = {"image": "sketch", "edit": "retouch", "upscale": "enlarge", "video": "clip", "chat": "echo"}
    known = catalog(ONE, ATELIER, TWO, disabled_providers=("atelier",))
    assert {task: known.mock(task).model.upstream for task in mocks} == mocks
    assert known.mock("edit", has_images=False).model.upstream == "sketch"


def test_public_ids() -> None:
    assert [catalog().public_id(name) for name in ("one/fox-v1", "vulpes", "wolf")] == ["fox", "fox", "wolf"]
    assert catalog().providers.names == {"one": "One", "two": "Two"}
