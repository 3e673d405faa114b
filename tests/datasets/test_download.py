"""Downloads from a server on this machine: whole, wrong, broken off, absent, silent."""

import contextlib
import gzip
import hashlib
import itertools
import time

import pytest

from clpapers.datasets import download as module
from clpapers.datasets.download import download
from clpapers.datasets.files import SourceError

BODY = bytes(range(256)) * 40
MD5 = hashlib.md5(BODY).hexdigest()


@pytest.fixture
def fetch(web, tmp_path):
    """Downloads a.bin from the server of the tests, or from other places."""

    def fetch(*urls, body=BODY):
        md5 = hashlib.md5(body).hexdigest()
        return download([*urls] or [f"{web.url}/a.bin"], "a.bin", md5, tmp_path / "downloads", most=200_000)

    return fetch


def test_a_whole_file_is_kept_and_not_fetched_twice_and_a_spoilt_one_anew(web, fetch, left):
    web.pages["/a.bin"] = BODY
    path = fetch()
    assert path.read_bytes() == BODY
    path.write_bytes(BODY[:100])
    assert fetch().read_bytes() == BODY
    web.pages.clear()
    assert fetch() == path
    assert left() == ["a.bin"]


def test_the_next_mirror_serves_where_the_first_does_not(web, fetch):
    web.pages["/good/a.bin"] = BODY
    assert fetch(f"{web.url}/gone/a.bin", f"{web.url}/good/a.bin").read_bytes() == BODY


def answering(*pieces, pause=0.0, status=(200,), **headers):
    """A page of some headers and then of pieces, with a pause between two, without an end where they have none."""

    def page(handler):
        handler.send_response(*status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        with contextlib.suppress(OSError):
            for piece in itertools.chain.from_iterable(pieces):
                handler.wfile.write(piece)
                time.sleep(pause)
        handler.close_connection = True

    return page


BOMB = gzip.compress(bytes(1 << 24))
DRIP = itertools.repeat(b"x")
FAULTS = {
    "tampered": (BODY[:-1] + b"!", rf"serves other bytes than the official file \(MD5 {MD5}\)"),
    "truncated": (BODY[:100], "serves other bytes"),
    "web page": (b"<html>log in first</html>", "serves a web page instead"),
    "absent": (None, "answers 404"),
    "a reason that rings": (answering(status=(403, "\x1b]0;title\x07 no")), "answers 403"),
    "broken off": (answering([BODY[:5000]], Content_Length=str(len(BODY))), "broke off"),
    "endless": (answering(itertools.repeat(bytes(1 << 16))), "serves more than the 200,000 bytes that the file may"),
    "large": (answering([b"x"], Content_Length=str(10**12)), "serves 1,000,000,000,000 bytes, more than the 200,000"),
    "drip": (answering(DRIP, pause=0.05, Content_Length="1000"), "took over 0 s for [0-9]+ bytes; try"),
    "drip without a size": (answering(DRIP, pause=0.05), "took over 0 s for"),
    "bomb": (answering([BOMB], Content_Encoding="gzip", Content_Length=str(len(BOMB))), "serves other bytes"),
    "no size": (answering([BODY[:10]], Content_Length="ten"), "serves other bytes"),
    "silent": (lambda handler: handler.server.release.wait(20), r"did not answer within 0\.2 s"),
    "a circle": (answering(status=(302,), Location="/a.bin"), "leads in a circle"),
    "to a file": (answering(status=(302,), Location="file:///etc/hostname"), "cannot be reached"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_and_bounded_and_nothing_is_left_and_the_next_run_recovers(
    web, fetch, left, monkeypatch, fault
):
    for name, value in {"TIMEOUT": (0.2, 0.2), "PATIENCE": 0.3, "SLOWEST": 10**8}.items():
        monkeypatch.setattr(module, name, value)
    page, said = FAULTS[fault]
    web.pages |= {} if page is None else {"/a.bin": page}
    with pytest.raises(SourceError, match=f"^{web.url}/a.bin {said}") as caught:
        fetch()
    assert str(caught.value).isprintable()
    assert left() == []
    web.pages["/a.bin"] = BODY
    assert fetch().read_bytes() == BODY


def test_a_full_disk_is_no_fault_of_the_source(web, fetch, small_files, left):
    web.pages["/a.bin"] = BODY
    with small_files(), pytest.raises(OSError, match="File too large"):
        fetch()
    assert left() == []


def test_bytes_are_kept_as_they_come(web, fetch):
    """A file that is packed, from a server that says so."""
    packed = gzip.compress(BODY)
    web.pages["/a.bin"] = answering([packed], Content_Encoding="gzip", Content_Length=str(len(packed)))
    assert fetch(body=packed).read_bytes() == packed
