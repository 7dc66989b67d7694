"""Build the TypeScript client, run its tests and its manual against a gateway, and install what `npm pack` makes of it.

    make test-typescript

Without node and npm, it ends with status 77 and says so.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.stories.processes import ROOT, Installation, Serving

SOURCE = ROOT / "clients" / "typescript"
MANUAL = ROOT / "docs" / "typescript-client.md"
SKIPPED = 77
WITHOUT = shutil.ignore_patterns("node_modules", "dist", "*.tgz")
IMPORTS = """
import { Penstock } from "@penstock/client";
const image = await new Penstock().image("a fox", { model: "atelier/sketch", size: "256x256" });
console.log(image.status);
"""


def main() -> int:
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        sys.stderr.write(f"not tested, because it is not installed: {', '.join(missing)}\n")
        return SKIPPED
    with TemporaryDirectory() as folder:
        return run_in(Path(folder))


def run_in(folder: Path) -> int:
    """Do it all in a copy of the client, so that nothing is left in the working copy."""
    client = folder / "client"
    shutil.copytree(SOURCE, client, ignore=WITHOUT)
    npm(client, "ci", "--no-fund", "--no-audit")
    npm(client, "run", "build")
    with Installation(folder / "data", "", None).serving() as serving:
        environment = {**os.environ, "PENSTOCK_URL": serving.url, "PENSTOCK_KEY": serving.key}
        tested = subprocess.run(["npm", "test"], cwd=client, env=environment, check=False)
        if tested.returncode:
            return tested.returncode
        for number, code in enumerate(re.findall(r"^```js\n(.*?)^```$", MANUAL.read_text(), re.DOTALL | re.MULTILINE)):
            (client / f"manual-{number}.mjs").write_text(code)
            subprocess.run(["node", f"manual-{number}.mjs"], cwd=client, env=environment, check=True)
        return install_packed(client, folder / "program", serving)


def install_packed(client: Path, program: Path, serving: Serving) -> int:
    """Install the package alone, as its users do, and make an image with it."""
    packed = subprocess.run(["npm", "pack", "--json"], cwd=client, check=True, capture_output=True, text=True)
    [package] = json.loads(packed.stdout)
    program.mkdir()
    (program / "package.json").write_text('{"type": "module"}')
    npm(program, "install", "--no-fund", "--no-audit", "--omit=peer", str(client / package["filename"]))
    (program / "program.mjs").write_text(IMPORTS)
    environment = {**os.environ, "PENSTOCK_URL": serving.url, "PENSTOCK_KEY": serving.key}
    subprocess.run(["node", "program.mjs"], cwd=program, env=environment, check=True)
    sys.stdout.write(f"{package['filename']}: {package['entryCount']} files, {package['size']} bytes\n")
    return 0


def npm(folder: Path, *words: str) -> None:
    subprocess.run(["npm", *words, "--loglevel=error"], cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
