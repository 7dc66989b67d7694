"""A provider inside this process."""

from penstock.providers import spec
from penstock.providers.inside import LocalService
from penstock_atelier.table import PROVIDER


def test_the_vocabulary_has_the_names_for_plug_ins() -> None:
    assert spec.LocalService is LocalService


def test_a_service_names_its_tasks() -> None:
    assert PROVIDER.local is not None
    assert {"sketch", "clip", "echo", "speak"} <= set(PROVIDER.local.tasks)
