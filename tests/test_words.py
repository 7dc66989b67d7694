"""One word for each thing: the source and the tests use those of docs/glossary.md, not those that they replaced."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"

# Words of the first versions, and what to say instead.
REPLACED = {
    "picture": "image",
    "film": "video",
    "vendor": "provider",
    "maker": "provider",
    "shelf": "storage",
    "shelve": "store",
    "transcript": "recording file",
    "likeness": "fingerprint",
    "wish": "request, or what it is",
    "news": "event",
    "settling": "settlement",
    "newcomer": "what it is",
    "workshop": "server",
    "unwell": "unhealthy",
    "sick": "unhealthy",
    "at the door": "before anything is sent",
}
WORD = re.compile(rf"(?<![a-z])({'|'.join(REPLACED)})(s|es|d|r)?(?![a-z])", re.IGNORECASE)


# As a verb in a sentence, `answer` is a plain word; as a name in the code it means a response.
REPLACED_NAMES = {"answer": "response", "answers": "responses"}


def sources() -> list[Path]:
    """Python, SQL and the pages; without the words of prompts, which are prose, and what others have written."""
    folder = ROOT / "src" / "penstock"
    prose = ROOT / "tests" / "unit" / "atelier"
    prompt_words = folder / "atelier" / "renderers" / "words.py"
    tests = [path for path in (ROOT / "tests").rglob("*.py") if prose not in path.parents and path != Path(__file__)]
    pages = [
        path
        for kind in ("js", "css", "html")
        for path in folder.rglob(f"*.{kind}")
        if path.parent.name != "third_party"
    ]
    return sorted({*folder.rglob("*.py"), *folder.rglob("*.sql"), *tests, *pages} - {prompt_words})


def test_the_source_and_the_tests_use_the_words_of_the_glossary() -> None:
    found = [
        f"{path.relative_to(ROOT)}, line {number}: {match[1]!r}; say {REPLACED[match[1].lower()]}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in WORD.finditer(line.replace("_", " "))
    ]
    assert found == []


def test_names_in_the_code_use_the_words_of_the_glossary() -> None:
    found = [
        f"{path.relative_to(ROOT)}, line {getattr(node, 'lineno', '?')}: {name!r}; say {REPLACED_NAMES[name]}"
        for path in sources()
        if path.suffix == ".py" and "answer" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if (name := name_of(node)) in REPLACED_NAMES
    ]
    assert found == []


def name_of(node: ast.AST) -> str:
    """The name that a node of the syntax tree introduces or uses, or an empty text."""
    for field in ("id", "arg", "attr", "name"):
        if isinstance(name := getattr(node, field, None), str):
            return name
    return ""


def test_the_glossary_explains_each_word_once() -> None:
    words = re.findall(r"^\| ([a-z][a-z, ]+) \| .+\.(?: .+\.)? \|$", GLOSSARY.read_text(), re.MULTILINE)
    assert len(words) > 25
    assert sorted(set(words)) == sorted(words)
