"""Webhooks: what receivers are told when a generation ends, and operators when money runs low.

`events` builds and signs an event and stores it as a message. `deliveries` delivers messages and retries; `delivery`
has what it works on. `records` shows messages as the API does.
"""
