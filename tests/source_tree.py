"""The modules of the source: what is in them, what they import, and on which layer they are."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "penstock"
BUILT_IN = ROOT / "src" / "penstock_atelier"  # the built-in provider, a plug-in like those of others

# One line per layer: packages, and the modules beside them. Each may import only what stands on a lower line, and never
# what stands on its own line. docs/tour.md draws the same file.
LAYERS = (ROOT / "docs" / "layers.txt").read_text()

# Modules that provider files share: the vocabulary, the names of rows, tables from schemas, conversions, the
# OpenAI-compatible API, tokens, and models that several providers serve.
NOT_PROVIDERS = {
    "__init__",
    "spec",
    "speech",
    "transcription",
    "voice_lists",
    "prices",
    "batches",
    "row_names",
    "exchange",
    "reported",
    "sounds",
    "gemini_images",
    "gemini_speech",
    "gemini_transcription",
    "gpt_chats",
    "gpt_images",
    "gpt_speech",
    "lyria",
    "gpt_transcription",
    "inside",
    "live",
    "stable_images",
    "derive",
    "convert",
    "open_speech",
    "openai_compatible",
    "chat_models",
    "dashscope_errors",
    "jwt",
}


@dataclass(frozen=True, slots=True)
class Module:
    path: Path
    words: tuple[str, ...]  # ("api", "models") for `api/endpoints/models.py`

    @property
    def unit(self) -> str:
        """The name under which LAYERS knows it."""
        return self.words[0]

    @property
    def is_provider(self) -> bool:
        """A file of providers/, or a file of a provider's folder there."""
        return self.unit == "providers" and self.words[1] not in NOT_PROVIDERS

    @property
    def provider(self) -> str:
        """Which provider it belongs to, if it `is_provider`."""
        return self.words[1]

    def __str__(self) -> str:
        return "/".join(self.words)


@cache
def modules() -> list[Module]:
    paths = sorted(SOURCE.rglob("*.py"))
    return [Module(path, path.relative_to(SOURCE).with_suffix("").parts) for path in paths]


@cache
def built_in_modules() -> list[Module]:
    """Those of the built-in provider: ("penstock_atelier", "renderers", "sky")."""
    paths = sorted(BUILT_IN.rglob("*.py"))
    return [Module(path, path.relative_to(BUILT_IN.parent).with_suffix("").parts) for path in paths]


@cache
def units() -> set[str]:
    return {module.unit for module in modules()}


@cache
def parsed(module: Module) -> ast.Module:
    return ast.parse(module.path.read_text())


@cache
def nodes(module: Module) -> list[ast.AST]:
    """Everything in a module."""
    return list(ast.walk(parsed(module)))


def none(problems: Iterable[str]) -> None:
    """Fail with all of them, so that one run shows everything there is to repair."""
    listed = list(problems)
    assert not listed, "\n" + "\n".join(listed)


def layers() -> list[list[str]]:
    return [line.split() for line in LAYERS.strip().splitlines()]


def imported(module: Module) -> Iterator[tuple[str, ...]]:
    """Each thing a module imports, wherever in it, as the words of its dotted name."""
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: write the import in full"
            assert node.module is not None
            yield from ((*node.module.split("."), alias.name) for alias in node.names)
