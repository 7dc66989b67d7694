"""Imports inside `quick_imports` are quicker, and nothing is different afterwards."""

import gc
import sys
from importlib import import_module

import pytest

from penstock.commands.quick_imports import quick_imports


def test_rich_is_hidden_and_the_collector_off_only_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rich", raising=False)
    assert gc.isenabled()
    with quick_imports():
        assert not gc.isenabled()
        with pytest.raises(ModuleNotFoundError):
            import_module("rich")
    assert gc.isenabled()
    assert import_module("rich").__name__ == "rich"


def test_what_was_so_before_stays_so() -> None:
    rich = import_module("rich")
    gc.disable()
    try:
        with quick_imports():
            assert import_module("rich") is rich
        assert not gc.isenabled()
    finally:
        gc.enable()
