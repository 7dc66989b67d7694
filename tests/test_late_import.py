"""A module that is imported late is imported by its use, not by pytest, which looks at everything in a test file."""

import json

import pytest

from tests.late_import import LateImport


def test_only_the_use_of_a_module_imports_it() -> None:
    missing = LateImport("no_such_module")
    assert [getattr(missing, name, None) for name in ("__wrapped__", "_get_wrapped_function", "__test__")] == [None] * 3
    with pytest.raises(ModuleNotFoundError):
        _ = missing.anything
    assert LateImport("json").loads is json.loads
