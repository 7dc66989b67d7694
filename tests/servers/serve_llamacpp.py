"""Run in llama.cpp's environment: its own HTTP server, with a model, a port and a key.

`python serve_llamacpp.py MODEL_FILE PORT KEY`
"""

import sys
import threading

import xllamacpp  # type: ignore[import-not-found]  # only in that environment

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port = int(sys.argv[2])
params.api_keys = [sys.argv[3]]
params.n_ctx = 2048
params.n_parallel = 2
params.endpoint_slots = True
server = xllamacpp.Server(params)
threading.Event().wait()
