"""The table of the paths of Penstock's own API."""

from penstock.api.native_routes import NATIVE_ROUTES


def test_each_path_is_of_version_1_or_of_the_sign_in_and_none_is_open() -> None:
    assert [route.path for route in NATIVE_ROUTES if not route.path.startswith("/v1/")] == []
    assert {route.access for route in NATIVE_ROUTES} == {"key", "admin", "operator"}
