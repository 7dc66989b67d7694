"""Call a gateway from Python: `penstock.Client`, `penstock.AsyncClient`, and the check of a webhook's signature.

`calls` makes a `Call` of what a caller asks for, `results` a `Generation` of what the gateway answers, and `retries`
says which calls are repeated, and after which pause. `client` sends calls over a `connection` of the standard library,
which the command line uses, too; `async_client` sends them over the HTTP client of the gateway. `files` reads inputs
and writes outputs, `failures` has the errors, and `webhook` checks signatures.
"""
