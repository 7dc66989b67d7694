"""Run in ComfyUI's environment: ComfyUI's own server, on the processor, without packages of others.

`python serve_comfyui.py SOURCE_FOLDER DATA_FOLDER PORT [PACKAGE_OF_NODES]`
"""

import runpy
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

import torch  # type: ignore[import-not-found]  # only in that environment

source, data, port, *nodes = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]

# torchvision's compiled part needs a graphics card's libraries and is not loaded; the rest asks for these operations.
library = torch.library.Library("torchvision", "DEF")
for operation in ("nms", "qnms"):
    library.define(f"{operation}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
# An empty module, imported by nodes for sound, which are not used here.
sys.modules["torchaudio"] = module_from_spec(ModuleSpec("torchaudio", None))

page = data / "page"  # in place of the package with the editor
page.mkdir(parents=True, exist_ok=True)
(page / "index.html").write_text("<!doctype html>")

sys.path.insert(0, str(source))
sys.argv = [
    "main.py", "--cpu", "--listen", "127.0.0.1", "--port", port, "--base-directory", str(data),
    "--front-end-root", str(page), "--disable-api-nodes", "--disable-all-custom-nodes",
    *(["--whitelist-custom-nodes", *nodes] if nodes else []),
]  # fmt: skip
runpy.run_path(str(source / "main.py"), run_name="__main__")
