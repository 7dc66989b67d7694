"""The commands of the command line, one file per group.

`terminal` has what all of them share: options, settings, an open store, tables; `output` what they print meanwhile.
Commands that call a running gateway use `gateway_client`, and `call_options` for what a caller asks for. `mcp_server`
has the tools of `penstock mcp`, and `exchanges` the recordings that `penstock providers check` makes.
"""
