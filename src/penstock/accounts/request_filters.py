"""Which requests to list: by time, key, status, model, labels and more, or a part of a text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase

from msgspec import json

from penstock.accounts.labels import label_columns
from penstock.store.paging import DEFAULT_LIMIT
from penstock.values import first_id

LOWEST_ID = "req_"
HIGHEST_ID = "req_~"
MAX_WORDS = 16
_ASCII_LOWER = {ord(letter): letter.lower() for letter in ascii_uppercase}
_ID_START = re.compile(r"req_[0-9a-z]*")


def encode_words(text: str) -> str | None:
    """The words of a search as JSON, each with the forms in which it is looked for; None without words.

    Databases are only sure to know the lower case of ASCII letters: a word with others is looked for in several forms.
    """
    words = text.split()[:MAX_WORDS]
    forms = [{_lower_ascii(form) for form in (word, word.lower(), word.upper(), word.capitalize())} for word in words]
    return json.encode([sorted(each) for each in forms]).decode() if forms else None


def _lower_ascii(text: str) -> str:
    return text.translate(_ASCII_LOWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which requests to list; both times are inclusive."""

    limit: int = DEFAULT_LIMIT
    starting_after: str | None = None
    ending_before: str | None = None
    created_after_ms: int | None = None
    created_before_ms: int | None = None
    key_id: str | None = None
    status: str | None = None
    model: str | None = None
    provider: str | None = None
    kind: str | None = None
    user: str | None = None
    session_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    content_credentials: str | None = None  # the status of one of the outputs
    # Words of the prompt, or a part of the id, the user or the session; `req_…` is the beginning of the id.
    search: str | None = None
    summary: bool = False

    @property
    def low(self) -> str | None:
        """The id above which the rows lie."""
        created = None if self.created_after_ms is None else first_id("req", self.created_after_ms)
        if self.search is None or not self.search.startswith(LOWEST_ID):
            return created
        if not _ID_START.fullmatch(self.search):
            return HIGHEST_ID
        # The last text before all that begin with the search: ids contain no character above `z`.
        before = self.search[:-1] + chr(ord(self.search[-1]) - 1) + "~"
        return max(created or "", before)

    @property
    def high(self) -> str | None:
        """The id below which the rows lie."""
        created = None if self.created_before_ms is None else first_id("req", self.created_before_ms + 1)
        if self.search is None or not self.search.startswith(LOWEST_ID):
            return created
        return min(created or HIGHEST_ID, self.search + "~")

    @property
    def is_plain(self) -> bool:
        """Whether only the time, the key and the status are given, which the usage slots count by."""
        others = (
            self.model, self.provider, self.kind, self.user, self.session_id, self.search, self.content_credentials,
        )  # fmt: skip
        return others == (None,) * len(others) and not self.labels

    @property
    def columns(self) -> dict[str, str | None]:
        """The values that rows are compared with, as the query takes them."""
        wanted = {"key_id": self.key_id, "status": self.status}
        if self.is_plain:
            return {name: value for name, value in wanted.items() if value is not None}
        return {
            **wanted,
            "model": self.model,
            "provider": self.provider,
            "kind": self.kind,
            "end_user": self.user,
            "session_id": self.session_id,
            **label_columns(self.labels),
            "content_credentials": self.content_credentials,
            "search": self.search,
            "words": self.search and encode_words(self.search),
        }

    @property
    def list_columns(self) -> dict[str, str | None]:
        """The same for a list, which finds the requests of a label by its first one."""
        if self.query_suffix != "_of_label":
            return self.columns
        name, value = next(iter(self.labels.items()))
        return {**self.columns, "label_name": name, "label_value": value}

    @property
    def query_suffix(self) -> str:
        """The end of the name of the query: there is one for each index, and the most selective is chosen."""
        if self.is_plain:
            names = [name.removesuffix("_id") for name in self.columns]
            return "_of_" + "_and_".join(names) if names else ""
        for name, value in (
            ("user", self.user),
            ("session", self.session_id),
            ("label", self.labels or None),
            ("credentials", self.content_credentials),
        ):
            if value is not None:
                return f"_of_{name}"
        for name in ("model", "provider"):
            if getattr(self, name) is not None:
                return f"_of_{name}"
        return "_matching" if self.kind in (None, "chat") else "_of_kind"
