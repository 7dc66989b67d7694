"""Webhooks: what receivers are told when a generation ends.

`events` builds and signs an event and stores it as a message. `deliveries` delivers messages and retries.
"""
