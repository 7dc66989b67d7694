"""One word for each thing: the source uses the words of docs/glossary.md and none of those that they replaced."""

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
}
WORD = re.compile(rf"(?<![a-z])({'|'.join(REPLACED)})(s|es|d|r)?(?![a-z])", re.IGNORECASE)


def sources() -> list[Path]:
    """Python and SQL; the pages are excluded until their redesign."""
    folder = ROOT / "src" / "penstock"
    return sorted([*folder.rglob("*.py"), *folder.rglob("*.sql")])


def test_the_source_uses_the_words_of_the_glossary() -> None:
    found = [
        f"{path.relative_to(ROOT)}, line {number}: {match[1]!r}; say {REPLACED[match[1].lower()]}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in WORD.finditer(line.replace("_", " "))
    ]
    assert found == []


def test_the_glossary_explains_each_word_once() -> None:
    words = re.findall(r"^\| ([a-z][a-z, ]+) \| .+\.(?: .+\.)? \|$", GLOSSARY.read_text(), re.MULTILINE)
    assert len(words) > 25
    assert sorted(set(words)) == sorted(words)
