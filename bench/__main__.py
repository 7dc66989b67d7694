"""Run every benchmark, one after the other, each in its own process.

    python -m bench [--short]

The short form takes a few minutes and only shows that they all still run; its figures mean little.
"""

import argparse
import subprocess
import sys

SHORT_OPTIONS = {
    "store": ["--seconds", "0.3"],
    "http_client": ["--rounds", "1"],
    "http_server": ["--short"],
    "image_conversion": ["--short"],
    "atelier": ["--short"],
    "images": ["--short"],
    "listing": ["--records", "20000"],
    "chat": ["--short"],
    "videos": ["--short"],
    "streams": ["--short"],
    "neighbours": ["--short"],
    "mixed": ["--short"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    failed = []
    for name, options in SHORT_OPTIONS.items():
        print(f"\n=== bench.{name}", flush=True)
        command = [sys.executable, "-m", f"bench.{name}", *(options if short else [])]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    print(f"\n{len(SHORT_OPTIONS) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
