"""A web server on this machine alone, for downloads that must never leave it."""

import http.server
import threading
from types import SimpleNamespace

import pytest


@pytest.fixture
def web():
    """`web.url` serves `web.pages[path]`: the body, or a function that is given the request handler."""
    pages, release = {}, threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page = pages.get(self.path)
            if callable(page):
                page(self)
                return
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Length", str(len(page or b"")))
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", pages=pages, release=release)
    release.set()
    server.shutdown()
    server.server_close()
