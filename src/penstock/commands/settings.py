"""List settings."""

from typing import Any

from penstock.commands.data_folder import Config, Data, load_settings
from penstock.commands.output import Json, print_json
from penstock.commands.tables import show_table
from penstock.settings.description import in_force


def list_settings(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """List every setting: its value in force, where that comes from, its default and its meaning."""
    found = in_force(load_settings(data=data, config=config))
    if as_json:
        print_json(found)
        return
    columns = ["name", "value", "origin", "variable", "default", "meaning"]
    rows = [[row["name"], _value(row), *(row[name] for name in columns[2:])] for row in found]
    show_table("Settings", columns, rows, on_terminal=("name", "value", "origin", "meaning"))


def _value(row: dict[str, Any]) -> str:
    """The value as text; of one that may be secret only that there is one."""
    if row["is_secret"]:
        return "(secret)" if row["is_set"] else ""
    value = row["value"]
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
