"""Copy the documentation into the wheel, where the gateway serves it at /docs; everything else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "src"))

from penstock.web.manual import HOME, manual_paths  # noqa: E402


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
        paths = list(manual_paths(ROOT))
        assert HOME in paths, f"{HOME} is missing: build from a clone or from the source distribution"
        return paths

    def _copy_of(self, path: str) -> Path:
        copy = Path(self.build_lib) / "penstock" / "web" / "manual" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        return copy


setup(cmdclass={"build_py": BuildWithManual})
