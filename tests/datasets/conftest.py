"""What data sets are built from: folders, a web server on this machine, clients of packages; never the network."""

import contextlib
import http.server
import resource
import threading
from types import SimpleNamespace

import pytest

from clpapers.datasets import build as building


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Official files, which all stand at https, cannot be reached."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")


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
    server.daemon_threads, server.release = True, release
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", pages=pages)
    release.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Puts a shell script on the PATH under a client's name; `sh`, `cp`, … stay reachable."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")

    def install(name, script):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)

    return install


@pytest.fixture
def build(tmp_path):
    """Builds a data set from `data/` and `downloads/`; its file is `out/NAME.npz`."""

    def build(spec, name="small", **options):
        places = {"data_folder": tmp_path / "data", "downloads": tmp_path / "downloads"}
        options = {"standin": None, "allow_partial": False} | options
        return building.build(name, spec, **places, **options, out=tmp_path / f"out/{name}.npz")

    return build


@pytest.fixture
def small_files():
    """A context in which the disk takes no file of more than 1,000 bytes."""

    @contextlib.contextmanager
    def small_files():
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return small_files


@pytest.fixture
def left(tmp_path):
    """The names of all files below a folder; of `out/`, `data/` and `downloads/`, unless another is named."""

    def left(*folders):
        places = [tmp_path / folder for folder in folders or ("out", "data", "downloads")]
        return sorted(path.name for place in places for path in place.rglob("*") if path.is_file())

    return left
