"""`python -m tests.servers [name …]` installs the servers that `make test-servers` uses, or says why it cannot."""

import sys

from tests.servers.installing import INSTALLERS, NOT_READY_TO_RUN, install

for name in sys.argv[1:] or INSTALLERS:
    sys.stdout.write(install(name) + "\n")
    sys.stdout.flush()
if not sys.argv[1:]:
    for name, reason in NOT_READY_TO_RUN.items():
        sys.stdout.write(f"{name}: not tested: {reason}\n")
