"""Every benchmark, one after the other, each in a process of its own.

    python -m bench [--short]

The short form shows in a minute or two that they all still run; its figures mean little.
"""

import argparse
import subprocess
import sys

SHORT = {
    "store": ["--seconds", "0.3"],
    "wire": ["--rounds", "1"],
    "edge": ["--short"],
    "pictures": ["--short"],
    "images": ["--short"],
    "listing": ["--records", "20000"],
    "chat": ["--short"],
    "videos": ["--short"],
    "streams": ["--short"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    short = parser.parse_args().short
    failed = []
    for name, options in SHORT.items():
        print(f"\n=== bench.{name}", flush=True)
        done = subprocess.run([sys.executable, "-m", f"bench.{name}", *(options if short else [])], check=False)
        if done.returncode:
            failed.append(name)
    print(f"\n{len(SHORT) - len(failed)} passed, {len(failed)} failed")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
