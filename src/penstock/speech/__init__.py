"""Speech: text in, sound out, passed on while the provider makes it, or kept in a file.

Start with `endpoint`: `request` checks the fields, `plan` decides what each candidate would be asked for, and `pricing`
what that may cost. `provider_sound` calls a provider and reads the sound from its replies, `conversion` brings it into
the format and speed that the caller wants, and `streamed_speech` passes it on, in one of the forms of `events`, and
settles the call. A sound that is to be kept is made by a job instead: `kept` accepts it, and `file` is its work.
`splitting` cuts texts that are longer than a model takes, and `voices` knows whose voice has which name.
`made_sound` is for models of effects and music that are asked here.
"""
