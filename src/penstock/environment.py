"""Environment variables, each of which may be given as a file: FAL_KEY_FILE names a file with the value of FAL_KEY."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.typed_config import Misconfigured

_SUFFIX = "_FILE"


class Environment(Mapping[str, str]):
    """Variables by name. Where NAME is not set and NAME_FILE is, the value is the text of that file.

    Orchestrators hand out secrets as files, and a file is not passed on to other processes as a variable is.
    """

    def __init__(self, variables: Mapping[str, str] = os.environ) -> None:
        self._variables = variables

    def __getitem__(self, name: str) -> str:
        """The value; raise Misconfigured if NAME and NAME_FILE are both set, or the file cannot be read."""
        file = self._variables.get(name + _SUFFIX)
        if not file:
            return self._variables[name]
        if self._variables.get(name):
            raise Misconfigured(f"{name} and {name}{_SUFFIX} are both set: unset one of them")
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise Misconfigured(f"{name}{_SUFFIX}: {file} cannot be read: {problem}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


ENVIRONMENT = Environment()
