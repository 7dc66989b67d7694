"""Transcription: sound in, text out, with the times and in the form that the caller wants.

Start with `endpoint`: `request` checks the fields, `sound` has the file measured and encoded by a child process, `plan`
decides what each candidate is asked for, and `pricing` what that costs. `listening` sends the parts of the sound to a
provider and joins what it understood; where the provider streams, `streamed_listening` reads that as it comes, and
`streamed_transcript` passes it on. `segments` makes lines of words, and `forms` writes the transcript that the caller
gets. A transcript that is to be kept is made by a job instead: `kept` accepts it, and `file` is its work.
"""
