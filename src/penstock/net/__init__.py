"""Outgoing HTTP.

`client` sends requests with `http1`, whose `connection`s belong to the event loop. `plain_urls`, `header_lines` and
`form` write them, and `tls` says which certificates are trusted. `response` reads responses within limits,
`event_stream` the events of a streamed one, and `errors` says for each failure whether the server may have received the
request. `guard` checks URLs that others supplied, `addresses` the IP addresses of their hosts.
"""
