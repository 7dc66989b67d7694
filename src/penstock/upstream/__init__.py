"""Calls to providers: what is sent, and what becomes of it.

`checks` and `extra_fields` check a request against a model's table, `translate` turns it into the provider's fields,
`client` sends it, and `replies` checks what comes back. `uploads` sends input files ahead. `local` starts providers
that answer inside this process. `failures` says why an attempt failed, `watch` and `failure_log` report it, and
`caller_error` chooses the error when all candidates failed.
"""
