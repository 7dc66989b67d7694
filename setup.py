"""Copy the documentation into the wheel, where the gateway serves it at /docs; everything else is in pyproject.toml.

`web/manual.py` says which files these are. It is run alone, because the package around it needs installed packages.
"""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
MANUAL = runpy.run_path(str(ROOT / "src/penstock/web/manual.py"))


class BuildWithManual(build_py):
    """Builds the package, and a copy of the documentation beside its pages."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # an editable installation reads the files where they are
            for path in self._manual():
                self.copy_file(str(ROOT / path), str(self._copy_of(path)))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        copies = [] if self.editable_mode else [str(self._copy_of(path)) for path in self._manual()]
        return [*super().get_outputs(include_bytecode), *copies]

    def _manual(self) -> list[str]:
        paths: list[str] = list(MANUAL["manual_paths"](ROOT))
        assert MANUAL["HOME"] in paths, "there is no documentation: build from a clone or from the source distribution"
        return paths

    def _copy_of(self, path: str) -> Path:
        copy = Path(self.build_lib) / "penstock" / "web" / "manual" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        return copy


setup(cmdclass={"build_py": BuildWithManual})
