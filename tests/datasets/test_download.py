"""Downloads from a server on this machine: whole, wrong, broken off, absent, silent."""

import hashlib

import pooch
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
    def full(self, url, output, _):
        with open(output, "wb") as stream:
            stream.write(BODY[:10])
        raise OSError(28, "No space left on device", output)

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(OSError, match="No space left"):
        download([f"{web.url}/a.bin"], "a.bin", MD5, tmp_path)
    assert left(tmp_path) == []
