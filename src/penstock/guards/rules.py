"""Check a text by the operator's words and limits; the time it takes grows only with the length of the text."""

import re
import unicodedata

from penstock.guards.configured import Rules


class CompiledRules:
    """Rules as they are applied to each call."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        # Alternatives without repetition: no prompt makes the search take longer than its length.
        words = "|".join(sorted(map(_pattern, rules.words), key=len, reverse=True))
        self._words = re.compile(rf"(?<!\w)(?:{words})") if words else None

    def reason(self, model: str, text: str, *, what: str = "prompt", has_images: bool = False) -> str | None:
        """Why the rules refuse a call for its prompt, or for what was written for it; None if they do not."""
        rules = self._rules
        if rules.max_characters is not None and len(text) > rules.max_characters:
            return f"the {what} has more than {rules.max_characters} characters"
        if has_images and any(_is_meant(model, allowed) for allowed in rules.models_without_images):
            return f"{model} takes no input images here"
        if self._words is not None and self._words.search(_folded(text)):
            return f"the {what} has a word that is not allowed"
        return None


def _folded(text: str) -> str:
    """Text without the differences between letters that people read as the same, such as wide and capital ones."""
    return unicodedata.normalize("NFKC", text).casefold()


def _pattern(word: str) -> str:
    folded = _folded(word.strip())
    spaced = r"\s+".join(map(re.escape, folded.removesuffix("*").split()))
    return spaced if folded.endswith("*") else rf"{spaced}(?!\w)"


def _is_meant(model: str, name: str) -> bool:
    return model.startswith(name[:-1]) if name.endswith("*") else model == name
