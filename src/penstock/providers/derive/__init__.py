"""Parameter tables from the JSON Schemas that providers publish about their models.

Start with `table`. `draft` holds the fields of a schema that are not recognised yet. `inputs` takes those for input
images and videos out of it, `shapes` those for the size, `lengths` those for the length of a video, `factors` those for
how much is upscaled, and `table` the rest. `resolutions` reads words such as `720p`, and `ceilings` says how much to
hold for a price that does not depend on the parameters.
"""
