"""Calls to providers: what is sent, and what becomes of it.

`translate` checks a request against a model's table and turns it into the provider's fields, `client` sends it, and
`replies` checks what comes back. `local` starts providers that answer inside this process. `errors` says how an attempt
fails, `watch` and `failure_log` report it, and `outcome` chooses the error when all candidates failed.
"""
