"""Import a module when a test first uses it: each worker imports the files of all tests, but runs only some of them."""

from importlib import import_module
from typing import Any


class LateImport:
    """Stands for a module that takes long to import. Looking at its private names, as pytest does, imports nothing."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(import_module(self._module), name)
