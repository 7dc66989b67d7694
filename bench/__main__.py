"""Run every benchmark, each in its own process.

    python -m bench [--short]

They run one after the other, so that none disturbs another. The short form only shows that nearly all of them still
run: it runs two at a time and prints the log of one that fails. Its figures mean nothing.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

SHORT_OPTIONS: dict[str, list[str] | None] = {
    "neighbours": ["--short"],  # the longest, so the first
    "store": ["--seconds", "0.3"],
    "http_client": ["--rounds", "1"],
    "http_server": ["--short"],
    "image_conversion": ["--short"],
    "provenance": ["--short"],
    "atelier": ["--short"],
    "images": ["--short"],
    "listing": ["--records", "20000"],
    "start": ["--rounds", "1"],
    "costs": ["--calls", "200", "--rounds", "1"],
    "telemetry": ["--calls", "200", "--rounds", "1"],
    "promises": ["--short"],
    "sqlite_writers": ["--works", "640"],
    "chat": ["--short"],
    "speech": ["--short"],
    "listening": None,  # needs a recogniser that is no dependency
    "videos": ["--short"],
    "batches": ["--short"],
    "ends": ["--videos", "50", "--rounds", "1"],
    "large_images": ["--short"],
    "streams": ["--short"],
    "held_streams": ["--short"],
    "pages": None,  # needs Chromium
    "simulation": ["--short"],
    "drill": ["--short"],
    "cluster": None,  # takes half a minute in its shortest form
    "mixed": None,  # takes a minute in its shortest form
}


def run_short(name: str, options: Sequence[str]) -> bool:
    """Run the short form of a benchmark and print its output; whether it passed."""
    command = [sys.executable, "-m", f"bench.{name}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"\n=== bench.{name}\n{done.stdout}{done.stderr if done.returncode else ''}", end="", flush=True)
    return not done.returncode


def run(name: str) -> bool:
    """Run a benchmark; whether it passed."""
    print(f"\n=== bench.{name}", flush=True)
    return not subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    if parser.parse_args().short:
        wanted = {name: options for name, options in SHORT_OPTIONS.items() if options is not None}
        with ThreadPoolExecutor(max_workers=2) as pool:
            passed = dict(zip(wanted, pool.map(run_short, wanted, wanted.values()), strict=True))
    else:
        passed = {name: run(name) for name in SHORT_OPTIONS}
    failed = [name for name, has_passed in passed.items() if not has_passed]
    print(f"\n{len(passed) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
