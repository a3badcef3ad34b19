"""Servers for git to fetch from: git http-backend behind https, and an sshd for the test."""

from __future__ import annotations

import base64
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
PRIVATE = "/private/"
"""Repositories below this folder require ``USER`` and ``PASSWORD``."""
USER, PASSWORD = "reader", "opensesame"


def has_http_backend() -> bool:
    """Return whether git http-backend and openssl are installed: apt-get install git openssl."""
    return bool(shutil.which("openssl")) and _backend().is_file()


def _backend() -> Path:
    done = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip(), "git-http-backend")


class _Handler(BaseHTTPRequestHandler):
    """Passes each request to ``git http-backend`` by CGI."""

    protocol_version = "HTTP/1.1"
    top: Path

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self._body())

    def _serve(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if path.startswith(PRIVATE) and self.headers.get("Authorization") != wanted:
            self._answer(401, [("WWW-Authenticate", 'Basic realm="the team"')], b"")
            return
        variables = {"GIT_PROJECT_ROOT": str(self.top), "GIT_HTTP_EXPORT_ALL": "1", "GIT_CONFIG_NOSYSTEM": "1"}
        variables |= {"HOME": str(self.top), "PATH": os.environ.get("PATH", os.defpath), "PATH_INFO": path}
        variables |= {"QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(body))}
        sent = {"CONTENT_TYPE": "Content-Type", "HTTP_CONTENT_ENCODING": "Content-Encoding"}
        sent["GIT_PROTOCOL"] = "Git-Protocol"
        variables |= {name: self.headers.get(header, "") for name, header in sent.items()}
        done = subprocess.run([_backend()], input=body, env=variables, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [
            (name, value.strip()) for name, _, value in (line.partition(":") for line in head.decode().split("\r\n"))
        ]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self._answer(status, [field for field in fields if field[0] != "Status"], content)

    def _answer(self, status: int, fields: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)


@contextmanager
def https(top: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Serve the repositories below ``top``. Yields the address and the certificate."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *words, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"top": top}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"https://localhost:{server.server_port}", certificate
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def silent() -> Iterator[tuple[str, threading.Event]]:
    """Start a server that accepts a connection but never answers. Yields its address, and whether the client left."""
    hung_up = threading.Event()

    def wait() -> None:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(4096):
                pass
            hung_up.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=wait, daemon=True).start()
        yield f"https://localhost:{listener.getsockname()[1]}", hung_up


@contextmanager
def ssh(folder: Path) -> Iterator[tuple[str, Path]]:
    """Start sshd for the user of the tests. Yields the address and an ssh configuration with access."""
    folder.mkdir(parents=True)
    for name in ("host", "user", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    user = pwd.getpwuid(os.getuid()).pw_name
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PermitRootLogin yes\nPermitUserEnvironment no\n"
    )
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "ssh_config").write_text(
        f"Host *\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  UserKnownHostsFile {folder}/known\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n"
    )
    if os.getuid() == 0:
        # sshd drops its privileges in this folder. Debian's service creates it, but containers have no services.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    assert SSHD
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", folder / "sshd_config"], stdin=subprocess.DEVNULL, stderr=log
        )
    try:
        _await(port, server, folder / "log")
        yield f"ssh://{user}@127.0.0.1:{port}", folder / "ssh_config"
    finally:
        server.terminate()
        server.wait(10)


def _await(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1000):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if server.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(log.read_text())
