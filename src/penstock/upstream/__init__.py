"""Calls to providers: what is sent, and what becomes of it.

Start with `client`, which sends a request to a `candidate`. Before that, `checks` and `extra_fields` check the request
against the model's table (`field_guesses` judges fields that no table knows, `roles` says what the input images of a
video are used for), and `translate` turns it into the provider's fields. `uploads` sends input files ahead. `replies`
checks what comes back, `image_stream` reads images that are streamed, and `local` starts providers that answer inside
this process. `faults` reads which faults a call asks for, a `drill` keeps them, and `drilled_client` has them happen.
`failures` says why an attempt failed, `watch` and `failure_log` report it, and `caller_error` chooses the
error when all candidates failed.
"""
