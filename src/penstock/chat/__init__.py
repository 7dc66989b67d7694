"""Chat completions, plain and streamed.

Start with `endpoint`: it checks the call with `request`, reserves the money, forwards the call and passes the answer
on. `stream` reads and writes server-sent events.
"""
