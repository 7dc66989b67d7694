"""Options that keep pytest from loading the plugins of other packages, which takes several times as long as pytest."""

from importlib.metadata import entry_points

NAMES = {plugin.name for plugin in entry_points(group="pytest11")} - {"penstock"}
WITHOUT_OTHER_PLUGINS = [word for name in sorted(NAMES) for word in ("-p", f"no:{name}")]
