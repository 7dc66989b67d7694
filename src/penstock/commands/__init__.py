"""The commands of the command line, one file per group.

Commands that work on a data folder begin with `data_folder`: its options, settings and store. Those that call a running
gateway use `gateway_client`, and `call_options` for what a caller asks for. `output` and `tables` print. `mcp_server`
has the tools of `penstock mcp`, and `exchanges` the recordings that `penstock providers check` makes.
"""
