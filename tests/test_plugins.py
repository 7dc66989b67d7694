"""The built-in provider imports nothing of Penstock but what docs/plugins.md promises to every plug-in."""

import ast
import importlib
import re
import tomllib
from importlib.metadata import entry_points

from tests.source_tree import BUILT_IN, ROOT, built_in_modules, imported, modules, none, parsed

PAGE = (ROOT / "docs" / "plugins.md").read_text()


def promised() -> dict[str, set[str]]:
    """The modules of the table, each with the names that may be imported from it; no names stand for all."""
    rows = re.findall(r"^\| `(penstock[\w.]+)` \| (.+?) \|", PAGE, re.MULTILINE)
    return {module: set(re.findall(r"`(\w+)`", names)) for module, names in rows}


def is_promised(words: tuple[str, ...]) -> bool:
    """Whether an import, with the words of its dotted name, is in the table: a module, or a public name in one."""
    table = promised()
    module, _, name = ".".join(words).rpartition(".")
    if ".".join(words) in table:
        return True
    return module in table and not name.startswith("_") and name in (table[module] or {name})


def test_the_table_can_be_read() -> None:
    assert promised()["penstock.imaging.formats"] == {"MAX_PIXELS"}
    assert promised()["penstock.providers.spec"] == set()


def test_what_is_not_promised_is_recognised() -> None:
    assert is_promised(("penstock", "providers", "spec", "Provider"))
    assert is_promised(("penstock", "imaging", "convert"))
    for name in ("imaging.workers.WorkerPool", "imaging.convert.normalise_input", "providers.spec._row", "settings"):
        assert not is_promised(("penstock", *name.split("."))), name


def test_the_built_in_provider_imports_only_what_is_promised() -> None:
    none(
        f"{module} imports {'.'.join(words)}, which docs/plugins.md does not promise to plug-ins"
        for module in built_in_modules()
        for words in imported(module)
        if words[0] == "penstock" and not is_promised(words)
    )


def test_the_built_in_provider_uses_only_promised_names_of_modules() -> None:
    """`convert.decode` after `from penstock.imaging import convert`: the names are used, not imported."""
    of_modules: dict[str, set[str]] = {}
    for name, names in promised().items():
        if names:
            of_modules.setdefault(name.rpartition(".")[2], set()).update(names)
    none(
        f"{module}, line {node.lineno}: {node.value.id}.{node.attr} is not promised to plug-ins"
        for module in built_in_modules()
        if ("penstock", "imaging", "convert") in set(imported(module))
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in of_modules
        if node.attr not in of_modules[node.value.id]
    )


def test_promised_names_exist() -> None:
    for module, names in promised().items():
        found = vars(importlib.import_module(module))
        assert names <= found.keys(), module


def test_penstock_does_not_import_its_built_in_provider() -> None:
    none(
        f"{module} imports {'.'.join(words)}; it is found by its entry point"
        for module in modules()
        for words in imported(module)
        if words[0] == BUILT_IN.name
    )


def test_the_built_in_provider_is_found_by_its_entry_point() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["penstock.providers"]
    installed = {point.name: point.value for point in entry_points(group="penstock.providers")}
    assert declared == {"atelier": "penstock_atelier.table:PROVIDER"}
    assert installed == declared
