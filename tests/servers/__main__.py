"""`python -m tests.servers [name …]` installs the servers that `make test-servers` uses, or says why it cannot."""

import sys

from tests.servers.installing import INSTALLERS, install

for name in sys.argv[1:] or INSTALLERS:
    sys.stdout.write(install(name) + "\n")
    sys.stdout.flush()
