"""Webhooks: what is sent when a generation ends.

`events` builds and signs a message, `deliveries` sends it and retries.
"""
