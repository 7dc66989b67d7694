"""Chat completions, whole and streamed.

Start with `endpoint`: it checks the call with `request`, finds its `candidates`, reserves its highest cost with
`pricing`, forwards it to a provider, and passes the response on; a `streamed_call` event by event. `provider_api` is
the API in which a provider is called: chat completions, or the Responses API of `pass_through`. `stream` reads
server-sent events and the usage in them. `responses` handles calls of the Responses API, which are translated where
the provider has only chat; `kept_items` finds what they refer to.
`repeats` answers a call that is sent again with its idempotency key. `passed_on` does for speech and transcripts what
`streamed_call` does for chat.
"""
