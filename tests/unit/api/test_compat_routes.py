"""The table of the compatible API's paths."""

from penstock.api.compat_routes import COMPAT_ROUTES
from penstock.generations import openrouter_videos


def test_each_path_is_where_clients_look_for_it_and_needs_a_key() -> None:
    places = ("/compat/v1/", f"{openrouter_videos.PATH}/")
    assert [route.path for route in COMPAT_ROUTES if not route.path.startswith(places)] == []
    assert {route.access for route in COMPAT_ROUTES} == {"key"}
