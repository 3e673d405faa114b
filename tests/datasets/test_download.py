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


def left(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_whole_file_is_kept_and_not_fetched_twice(web, tmp_path):
    web.pages["/a.bin"] = BODY
    path = download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path)
    assert path.read_bytes() == BODY
    web.pages.clear()
    assert download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path) == path
    assert left(tmp_path) == ["a.bin"]


def test_a_spoilt_file_is_fetched_anew(web, tmp_path):
    web.pages["/a.bin"] = BODY
    (tmp_path / "a.bin").write_bytes(BODY[:100])
    assert download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path).read_bytes() == BODY


def test_the_next_mirror_serves_where_the_first_does_not(web, tmp_path):
    web.pages["/good/a.bin"] = BODY
    urls = [f"{web.url}/gone/a.bin", f"{web.url}/good/a.bin"]
    assert download(urls, "a.bin", MD5, tmp_path).read_bytes() == BODY


def broken_off(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    handler.wfile.write(BODY[: len(BODY) // 2])
    handler.close_connection = True


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        (BODY[:-1] + b"!", f"serves other bytes than the official file \\(MD5 {MD5}\\)"),
        (BODY[:100], "serves other bytes"),
        (b"<html>log in first</html>", "serves a web page instead"),
        (None, "answers 404"),
        (broken_off, "broke off"),
    ],
    ids=["tampered", "truncated", "web page", "absent", "broken off"],
)
def test_faults_are_named_and_nothing_is_left_and_the_next_run_recovers(web, tmp_path, page, fault):
    if page is not None:
        web.pages["/a.bin"] = page
    with pytest.raises(SourceError, match=f"{web.url}/a.bin {fault}") as caught:
        download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path)
    assert "\n" not in str(caught.value)
    assert left(tmp_path) == []
    web.pages["/a.bin"] = BODY
    assert download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path).read_bytes() == BODY


def test_a_silent_server_is_given_up(web, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", (0.2, 0.2))
    web.pages["/a.bin"] = lambda handler: web.release.wait(20)
    with pytest.raises(SourceError, match=r"did not answer within 0\.2 s"):
        download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path)
    assert left(tmp_path) == []


def test_nobody_listening(tmp_path):
    with pytest.raises(SourceError, match=r"http://127\.0\.0\.1:9/a\.bin cannot be reached"):
        download(["http://127.0.0.1:9/a.bin"], "a.bin", MD5, tmp_path)


def test_a_full_disk_is_no_fault_of_the_source(web, tmp_path, monkeypatch):
    def full(url, output, most):
        with open(output, "wb") as stream:
            stream.write(BODY[:10])
        raise OSError(28, "No space left on device", output)

    monkeypatch.setattr(module, "_fetch", full)
    with pytest.raises(OSError, match="No space left"):
        download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path)
    assert left(tmp_path) == []


def answering(*pieces, pause=0.0, **headers):
    """A page of some headers and then of pieces, with a pause between two, without an end where they have none."""

    def page(handler):
        handler.send_response(200)
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


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        (answering(itertools.repeat(bytes(1 << 16))), "serves more than the 200,000 bytes that the file may have"),
        (answering([b"x"], Content_Length=str(10**12)), "serves 1,000,000,000,000 bytes, more than the 200,000 that"),
        (answering(itertools.repeat(b"x"), pause=0.05, Content_Length="1000"), "took over 0 s for [0-9]+ bytes; try"),
        (answering(itertools.repeat(b"x"), pause=0.05), "took over 4 s for|took over 0 s for"),
        (answering([BOMB], Content_Encoding="gzip", Content_Length=str(len(BOMB))), "serves other bytes"),
        (answering([BODY[:10]], Content_Length="ten"), "serves other bytes"),
    ],
    ids=["endless", "large", "drip", "drip without a size", "bomb", "no size"],
)
def test_a_mirror_of_bad_habits_is_bounded_in_bytes_and_in_time(web, tmp_path, monkeypatch, page, fault):
    monkeypatch.setattr(module, "PATIENCE", 0.4)
    monkeypatch.setattr(module, "SLOWEST", 10**8)
    web.pages["/a.bin"] = page
    with pytest.raises(SourceError, match=f"{web.url}/a.bin ({fault})"):
        download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path, most=200_000)
    assert left(tmp_path) == []


def test_bytes_are_kept_as_they_come(web, tmp_path):
    """A file that is packed, from a server that says so."""
    packed = gzip.compress(BODY)
    web.pages["/a.gz"] = answering([packed], Content_Encoding="gzip", Content_Length=str(len(packed)))
    path = download([f"{web.url}/a.gz"], "a.gz", hashlib.md5(packed).hexdigest(), tmp_path)
    assert path.read_bytes() == packed


def test_a_reason_reaches_no_terminal_as_it_is(web, tmp_path):
    def page(handler):
        handler.send_response(403, "\x1b]0;title\x07 no")
        handler.end_headers()

    web.pages["/a.bin"] = page
    with pytest.raises(SourceError, match="answers 403") as refusal:
        download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(
    ("place", "said"), [("/a.bin", "leads in a circle"), ("file:///etc/hostname", "cannot be reached")]
)
def test_an_answer_that_leads_in_a_circle_or_to_a_file_of_this_machine(web, tmp_path, place, said):
    def page(handler):
        handler.send_response(302)
        handler.send_header("Location", place)
        handler.end_headers()

    web.pages["/a.bin"] = page
    with pytest.raises(SourceError, match=said):
        download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path)
