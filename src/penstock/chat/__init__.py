"""Chat completions, whole and streamed.

Start with `endpoint`: it checks the call with `request`, reserves its highest cost with `pricing`, forwards it to a
provider, and passes the response on. `stream` passes server-sent events on and reads the usage from them.
"""
