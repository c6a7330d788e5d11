"""A server below HTTP on the loopback interface: it reads one request and sends whatever bytes it is told to."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl

Act = Callable[[socket.socket], bool]
"""Answers on a connection; ``True`` to read a further request from it."""


class RawServer:
    """Calls ``act`` with the connection after each whole request; ``closed`` counts the connections that it ended.

    With ``tls`` it speaks TLS.
    """

    def __init__(self, act: Act, tls: ssl.SSLContext | None = None) -> None:
        self._act = act
        self._tls = tls
        self.heads: list[bytes] = []
        self.reads_requests = True
        self.closed = threading.Semaphore(0)
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            while (not self.reads_requests or self._read(connection)) and self._act(connection):
                pass
            connection.close()
            self.closed.release()
        except OSError:
            return

    def _read(self, connection: socket.socket) -> bool:
        came = b""
        while b"\r\n\r\n" not in came:
            more = connection.recv(65536)
            if not more:
                return False
            came += more
        head, _, body = came.partition(b"\r\n\r\n")
        sizes = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        while len(body) < int(sizes[0] if sizes else 0):
            body += connection.recv(65536)
        self.heads.append(head)
        return True


def sending(answer: bytes, *, again: bool = False, reset: bool = False) -> Act:
    """Return an act that sends bytes and then reads on, ends the connection, or breaks it."""

    def act(connection: socket.socket) -> bool:
        connection.sendall(answer)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return again

    return act


def answer(body: bytes, *headers: str, status: int = 200) -> bytes:
    """Return a whole answer."""
    head = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
