"""Outgoing HTTP.

`client` sends requests, `response` reads responses within limits, and `errors` says for each failure whether the
server may have received the request. `guard` checks URLs that others supplied, `addresses` the IP addresses of their
hosts.
"""
