"""Run every benchmark, one after the other, each in its own process.

    python -m bench [--short]

The short form takes a few minutes and only shows that nearly all of them still run; its figures mean little.
"""

import argparse
import subprocess
import sys

SHORT_OPTIONS: dict[str, list[str] | None] = {
    "store": ["--seconds", "0.3"],
    "http_client": ["--rounds", "1"],
    "http_server": ["--short"],
    "image_conversion": ["--short"],
    "atelier": ["--short"],
    "images": ["--short"],
    "listing": ["--records", "20000"],
    "start": ["--rounds", "1"],
    "costs": ["--calls", "200", "--rounds", "1"],
    "telemetry": ["--calls", "200", "--rounds", "1"],
    "sqlite_writers": ["--works", "640"],
    "chat": ["--short"],
    "videos": ["--short"],
    "ends": ["--videos", "50", "--rounds", "1"],
    "large_images": ["--short"],
    "streams": ["--short"],
    "neighbours": ["--short"],
    "pages": None,  # needs Chromium
    "mixed": None,  # takes a minute in its shortest form
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    failed = []
    run = 0
    for name, options in SHORT_OPTIONS.items():
        if short and options is None:
            continue
        print(f"\n=== bench.{name}", flush=True)
        run += 1
        command = [sys.executable, "-m", f"bench.{name}", *(options if short and options else [])]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    print(f"\n{run - len(failed)} passed, {len(failed)} failed {' '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
