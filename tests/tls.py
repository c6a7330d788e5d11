"""Certificates, and a proxy that leads every name to one place: what a test of secure connections needs."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from typing import TYPE_CHECKING

import trustme

from tests.backends.hindsight.raw import Act, sending

if TYPE_CHECKING:
    from pathlib import Path


class Authority:
    """An authority of its own, with its certificate in a file."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._ca = trustme.CA()
        self.file = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(self.file)
        self._folder = folder

    def context(self, *names: str, days: tuple[int, int] = (-1, 30)) -> ssl.SSLContext:
        """Return what a server needs to be one of the names, between two days counted from today."""
        today = dt.datetime.now(dt.UTC)
        since, until = (today + dt.timedelta(days=day) for day in days)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names, not_before=since, not_after=until).configure_cert(context)
        return context


def relaying(port: int) -> Act:
    """Return an act of a proxy that answers CONNECT and then carries bytes to a port of this machine and back."""

    def act(connection: socket.socket) -> bool:
        with socket.create_connection(("127.0.0.1", port)) as server:
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=_carry, args=(server, connection), daemon=True)
            back.start()
            _carry(connection, server)
            back.join()
        return False

    return act


def _carry(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


def refusing(status: str) -> Act:
    """Return an act that answers with a status alone."""
    return sending(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
