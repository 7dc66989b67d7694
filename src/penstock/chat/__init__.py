"""Chat completions, whole and streamed.

Start with `endpoint`: it checks the call with `request`, finds its `candidates`, reserves its highest cost with
`pricing`, forwards it to a provider, and passes the response on. `provider_api` is the API in which a provider is
called: chat completions, or the Responses API of `pass_through`. `stream` passes server-sent events on and reads the
usage from them. `responses` handles calls of the Responses API, which are translated where the provider has only chat.
"""
