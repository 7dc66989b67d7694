"""`penstock image`, `edit` and `upscale`: files, pipes, masks, JSON."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

from PIL import Image

from tests.fake_providers.scripted import png
from tests.stories.processes import Serving
from tests.unit.commands.conftest import Command, TypeOnStdin


def image_in(content: bytes) -> tuple[str | None, tuple[int, int]]:
    with Image.open(io.BytesIO(content)) as opened:
        return opened.format, opened.size


def test_images_are_generated_edited_and_upscaled_into_files(run: Command, folder: Path) -> None:
    ended = run("image", "a lighthouse at dusk, calm sea", "--size", "256x256", "-o", "sea.webp", "--set", "seed=3")
    assert (ended.status, ended.out) == (0, ""), ended.err
    assert "Saved sea.webp (256x256, " in ended.err
    assert "atelier/sketch, $0.001, " in ended.err
    assert image_in((folder / "sea.webp").read_bytes()) == ("WEBP", (256, 256))

    ended = run("edit", "make it night", "-i", "sea.webp", "--size", "256x256", "-n", "2", "-o", "night.png")
    assert ended.status == 0, ended.err
    assert sorted(path.name for path in folder.glob("night*")) == ["night-1.png", "night-2.png"]
    assert "$0.002" in ended.err

    ended = run("upscale", "night-1.png", "--factor", "2", "-o", "large.jpg")
    assert ended.status == 0, ended.err
    assert image_in((folder / "large.jpg").read_bytes()) == ("JPEG", (512, 512))


def test_a_mask_and_several_inputs_reach_the_provider(run: Command, folder: Path) -> None:
    for name in ("a.png", "b.png"):
        (folder / name).write_bytes(png(64, 64))
    Image.new("RGBA", (64, 64)).save(folder / "mask.png")
    words = ("edit", "a hat", "-m", "edit-1", "-i", "a.png", "-i", "b.png", "--mask", "mask.png", "-o", "out.png")
    ended = run(*words)
    assert ended.status == 0, ended.err
    assert (folder / "out.png").is_file()


def test_pipes_carry_prompts_in_and_images_out(run: Command, folder: Path, type_on_stdin: TypeOnStdin) -> None:
    type_on_stdin(b"a red boat\n")
    words = ("image", "--size", "256x256", "-o", "boat.png")
    assert run(*words).status == 0
    type_on_stdin((folder / "boat.png").read_bytes())
    assert run("upscale", "-", "--factor", "2", "-o", "large.png").status == 0
    assert run("upscale", "--input", "large.png", "--factor", "2", "-o", "larger.png").status == 0
    assert image_in((folder / "large.png").read_bytes()) == ("PNG", (512, 512))


def test_an_image_goes_to_a_pipe(served: Serving) -> None:
    command = [sys.executable, "-m", "penstock", "image", "a fox", "--size", "256x256"]
    environment = os.environ | {"PENSTOCK_URL": served.url, "PENSTOCK_KEY": served.key}
    ended = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
    assert image_in(ended.stdout) == ("PNG", (256, 256))
    assert b"$0.001" in ended.stderr


def test_json_is_the_gateways_response_and_the_files(run: Command, folder: Path) -> None:
    ended = run("image", "a fox", "--size", "256x256", "--json", "-o", "fox.png")
    result = json.loads(ended.out)
    assert (result["size"], result["files"], result["metadata"]["cost"]) == ("256x256", ["fox.png"], 0.001)
    (record,) = json.loads(run("requests", "--limit", "1", "--json").out)["data"]
    assert (record["id"], record["cost"]) == (result["id"], 0.001)
    (row,) = run("requests", "--limit", "1").lines
    assert (row[0], row[2], row[4]) == (result["id"], "atelier/sketch", "$0.001")
