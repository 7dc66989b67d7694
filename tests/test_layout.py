"""The shape of the source: who may import whom, how long a file may be, that each has its sentence and its tests."""

import ast
import re
from pathlib import Path

from penstock.settings import description
from tests.providers.recordings import SOUND_TASKS, known_providers
from tests.source_tree import (
    LAYERS,
    NOT_PROVIDERS,
    ROOT,
    Module,
    built_in_modules,
    imported,
    layers,
    modules,
    nodes,
    none,
    parsed,
    units,
)

# Libraries that would spread if anybody could import them, and the modules that may.
ONLY_IN = {
    "uvicorn": {"http_server", "commands"},
    "apsw": {"store"},
    "PIL": {"imaging"},
    "av": {"imaging", "sound"},
    "xml": {"imaging"},
    "zlib": {"net", "accounts"},  # `net` decompresses responses in small steps; `accounts` computes a checksum
    "gzip": {"web"},  # compresses the pages
}

# Modules that decode images, videos and XML, and what others may use of them.
DECODERS = {
    ("imaging", "convert"): set[str](),
    ("imaging", "svg"): set[str](),
    ("imaging", "previews"): set[str](),
    ("imaging", "video"): set[str](),
    ("imaging", "video_boxes"): set[str](),
    ("imaging", "video_codecs"): set[str](),
    ("provenance", "seal"): set(),
    ("sound", "convert"): set[str](),
    ("sound", "decode"): set[str](),
    ("sound", "encode"): set[str](),
    ("sound", "measure"): set[str](),
    ("sound", "prepare"): set[str](),
    ("sound", "remake"): set[str](),
}

LINES_MAX = 400
PROVIDER_LINES_MAX = 200

PRINTING = {"commands"}

# Names that say nothing, or that say "everything else".
BANNED = set(
    "util utils helper helpers common manager managers service services handler handlers core misc lib tools shared "
    "stuff req res cfg opts".split()
)


# ----------------------------------------------------------------------------------------------------------- directions


def heights() -> dict[str, int]:
    """How far each module stands above the ground."""
    return {name: height for height, line in enumerate(reversed(layers())) for name in line}


def imported_units(module: Module) -> set[str]:
    """What a module imports of us. `from penstock import __version__` names no module, and counts as `__init__`. What
    that offers of others, it imports only when a program uses it; `tests/unit/client/test_client.py` checks that.
    """
    if module.words == ("__init__",):
        return set()
    ours = {words[1:] for words in imported(module) if words[0] == "penstock"}
    return {words[0] if words and words[0] in units() else "__init__" for words in ours}


def test_layers_name_every_module() -> None:
    unknown = sorted(units() - heights().keys())
    assert not unknown, f"add to docs/layers.txt, on the lowest line that serves: {', '.join(unknown)}"


def test_layers_name_nothing_twice() -> None:
    names = LAYERS.split()
    assert sorted(set(names)) == sorted(names)


def test_imports_point_down() -> None:
    height = heights()
    none(
        f"{module} imports {unit}, which does not stand below it"
        for module in modules()
        for unit in sorted(imported_units(module) - {module.unit})
        if module.unit in height and height.get(unit, 0) >= height[module.unit]
    )


def test_providers_know_only_the_vocabulary() -> None:
    none(
        f"{module} imports {'.'.join(words)}; a provider knows spec and no other provider"
        for module in modules()
        for words in imported(module)
        if module.is_provider and words[:2] == ("penstock", "providers")
        if words[2] not in NOT_PROVIDERS | {module.provider}
    )


def test_libraries_stay_where_they_belong() -> None:
    none(
        f"{module} imports {words[0]}, which only {', '.join(sorted(ONLY_IN[words[0]]))} may"
        for module in modules()
        for words in imported(module)
        if module.unit not in ONLY_IN.get(words[0], {module.unit})
    )


def names_used(module: Module, of: tuple[str, ...]) -> set[str]:
    """What a module uses of another one of ours, whether it imports the module or names in it."""
    of = ("penstock", *of)
    names = {words[len(of)] for words in imported(module) if words[: len(of)] == of and len(words) > len(of)}
    if of in imported(module):
        attributes = (node for node in nodes(module) if isinstance(node, ast.Attribute))
        names |= {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == of[-1]}
    return names


def test_files_of_strangers_are_decoded_only_in_child_processes() -> None:
    """By name, a decoder is used only as a child task; what renders in children may import it."""
    everywhere = [*modules(), *built_in_modules()]
    renderers = {module.words for module in built_in_modules() if module.words[1] == "renderers"}
    in_children = {*DECODERS, *renderers}
    none(
        f"{module} imports {words[0]}; name it in DECODERS"
        for module in everywhere
        if module.words not in in_children
        for words in imported(module)
        if words[0] in ("PIL", "av", "c2pa", "xml")
    )
    none(
        f"{module} uses {'/'.join(decoder)}.{name}; run it in a child process, as a task of `imaging.workers`"
        for module in everywhere
        if module.words not in in_children
        for decoder, harmless in DECODERS.items()
        for name in sorted(names_used(module, decoder) - harmless)
    )


# ------------------------------------------------------------------------------------------------------------- settings

# The names under which modules hold a Settings object.
SETTINGS_HOLDERS = {"settings", "_settings", "these"}


def holder(node: ast.Attribute) -> str:
    """`settings` for `settings.port` and for `gateway.settings.port`."""
    if isinstance(node.value, ast.Name):
        return node.value.id
    return node.value.attr if isinstance(node.value, ast.Attribute) else ""


def settings_read() -> set[str]:
    """The settings that any module but `settings` itself reads."""
    return {
        node.attr
        for module in modules()
        if module.words != ("settings",)
        for node in nodes(module)
        if isinstance(node, ast.Attribute) and holder(node) in SETTINGS_HOLDERS
    }


def test_settings_are_read() -> None:
    """A setting that no module reads promises what it does not do."""
    read = settings_read()
    none(f"no module reads the setting {name}" for name, *_ in description.rows() if name not in read)


# ---------------------------------------------------------------------------------------------------------------- files


def lines_max(module: Module) -> int:
    return PROVIDER_LINES_MAX if module.is_provider else LINES_MAX


def test_files_are_short() -> None:
    none(
        f"{module} has {lines} lines; the most is {lines_max(module)}"
        for module in [*modules(), *built_in_modules()]
        if (lines := len(module.path.read_text().splitlines())) > lines_max(module)
    )


def unlike_a_sentence(module: Module) -> str:
    first, *rest = (ast.get_docstring(parsed(module)) or "").splitlines() or [""]
    if not first:
        return "has no docstring to say in one sentence what it is for"
    if not first.endswith("."):
        return "does not begin with a whole sentence on one line"
    if re.search(r"[.!?] +[A-Z]", first):
        return "says more than one sentence on its first line"
    return "needs an empty line after its first sentence" if rest and rest[0] else ""


def test_modules_begin_with_one_sentence() -> None:
    everywhere = [*modules(), *built_in_modules()]
    none(f"{module} {problem}" for module in everywhere if (problem := unlike_a_sentence(module)))


def test_modules_are_named_for_what_they_do() -> None:
    none(
        f"{module}: {word} does not say what it does"
        for module in [*modules(), *built_in_modules()]
        for part in module.words
        for word in part.split("_")
        if word in BANNED
    )


def test_modules_do_not_print() -> None:
    none(
        f"{module}, line {node.lineno}: only {', '.join(sorted(PRINTING))} prints"
        for module in modules()
        for node in nodes(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        if module.unit not in PRINTING
    )


def test_ids_of_organizations_have_their_own_type() -> None:
    """So that mypy finds the id of a key or a request where that of an organization is expected."""
    none(
        f"{module}, line {node.lineno}: org_id is an OrgId"
        for module in modules()
        for node in nodes(module)
        if (isinstance(node, ast.arg) and node.arg == "org_id" and node.annotation)
        or (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "org_id")
        if "OrgId" not in ast.unparse(node.annotation or node)
    )


def test_folders_of_modules_are_packages() -> None:
    """Otherwise they would be missing from the wheel."""
    folders = sorted({module.path.parent for module in [*modules(), *built_in_modules()]})
    none(
        f"{folder.relative_to(ROOT)} has no __init__.py" for folder in folders if not (folder / "__init__.py").exists()
    )


# ---------------------------------------------------------------------------------------------------------------- tests


def speaks_only(module: Module) -> bool:
    found = known_providers().get(module.provider)
    return found is not None and {model.op.task for model in found.models} <= {*SOUND_TASKS}


def homes_of_tests(module: Module) -> list[Path]:
    """Any of these will do: a provider's tests are its recordings, everybody else's are a file in the same place."""
    if module.is_provider:
        slugs = {module.provider, module.provider.replace("_", "-")}
        folder = ROOT / "tests" / "providers"
        # One that only speaks has no recordings: tests/providers/test_speech.py has a fake of it.
        return [
            *(folder / slug for slug in sorted(slugs)),
            *([folder / "test_speech.py"] if speaks_only(module) else []),
        ]
    *folders, name = module.words
    return [ROOT.joinpath("tests", "unit", *folders, f"test_{name}.py")]


def test_modules_have_tests() -> None:
    none(
        f"{module} has no {' or '.join(str(home.relative_to(ROOT)) for home in homes_of_tests(module))}"
        for module in modules()
        if not module.words[-1].startswith("__") and not any(home.exists() for home in homes_of_tests(module))
    )


def test_nothing_is_imported_from_a_module_of_tests() -> None:
    """What several of them use is in a module without tests, as tests/README.md lists them."""
    paths = sorted(path for folder in ("tests", "docs", "bench") for path in (ROOT / folder).rglob("*.py"))
    users = [Module(path, path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    none(
        f"{user} imports {'.'.join(words)}"
        for user in users
        for words in imported(user)
        if words[0] == "tests" and any(word.startswith("test_") for word in words)
    )


def test_unit_tests_have_a_module() -> None:
    """A module that is renamed takes its tests along; a long one may split them, as in test_deliveries_loop.py."""
    homes: dict[Path, set[str]] = {}
    for home in [home for module in modules() for home in homes_of_tests(module)]:
        homes.setdefault(home.parent, set()).add(f"{home.stem}_")
    none(
        f"{path.relative_to(ROOT)} tests no module of that name"
        for path in sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
        if not f"{path.stem}_".startswith(tuple(homes.get(path.parent, ())))
    )
