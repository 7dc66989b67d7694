"""Provider tests run on SQLite only, because providers do not use the database; their own clients are loaded late."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

import pytest

from penstock.store.base import Dialect

# Clients that the tests of one provider use. Together they take three seconds to import.
CLIENTS = {
    "fal_client", "google.auth.jwt", "google.genai", "google.oauth2.credentials", "luma_agents", "openrouter",
    "runwayml", "webuiapi", "xai_sdk",
}  # fmt: skip


class LateClients(MetaPathFinder):
    """Lets `import client` return at once; the client is loaded when a test first uses something of it.

    Each worker imports the files of all tests, but runs only some of them.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in CLIENTS else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


sys.meta_path.insert(0, LateClients())


@pytest.fixture
def dialect() -> Dialect:
    return "sqlite"
