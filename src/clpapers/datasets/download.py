"""Download one file over HTTP; it gets its name only after its checksum is proven."""

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pooch
import requests
import urllib3
from tqdm import tqdm

from clpapers.datasets.files import SourceError, looks_like_html
from clpapers.provenance import escaped

TIMEOUT = (10.0, 30.0)  # seconds: to connect, and between two pieces of the answer
LARGEST_DOWNLOAD = 10**9  # bytes of a file, unless its source states more
PATIENCE, SLOWEST = 60.0, 50_000  # seconds for any file, and bytes a second beyond them
PIECE = 1 << 18  # bytes


def download(
    urls: list[str], filename: str, digest: str, folder: Path, algorithm: str = "md5", most: int = LARGEST_DOWNLOAD
) -> Path:
    """Fetch `folder/filename` from the first of `urls` that serves it, unless it is there; returns its path.

    The file's checksum must begin with `digest`. A file that is there but wrong is fetched again. A download stays in
    a temporary folder, removed on any failure, until it is proven. It may have `most` bytes, and take as long as a
    slow line takes for the size that the answer states. Raises SourceError, with every URL's failure, where none
    serves; OSError where the disk does not take the file.
    """
    target, failures = folder / filename, []
    if target.exists() and pooch.file_hash(target, algorithm).startswith(digest):
        return target
    for url in urls:
        try:
            with workplace(folder) as work:
                fetched = work / filename
                _fetch(url, fetched, most)
                if pooch.file_hash(fetched, algorithm).startswith(digest):
                    return fetched.replace(target)
            official = f"{algorithm.upper().replace('SHA', 'SHA-')} {digest}"
            failures.append(f"{url} serves other bytes than the official file ({official}); they were not kept")
        except SourceError as error:
            failures.append(str(error))
        except requests.exceptions.RequestException as error:  # an OSError too, which callers would take for the disk's
            failures.append(f"{url} {_reason(error)}")
    raise SourceError("; ".join(failures))


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Make a folder inside `folder`, on the same disk, so that moving a file out is a rename; remove it at the end.

    Folders that killed processes left are removed too, once they are a day old: no fetch takes that long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(".fetching-*"):
        if time.time() - left.stat().st_mtime > 86400:
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.resolve()) as work:
        yield Path(work)


def _fetch(url: str, output: Path, most: int) -> None:
    """Write the bytes of an answer as they come, unpacked by nobody."""
    began, plain = time.monotonic(), {"Accept-Encoding": "identity"}
    with requests.get(url, headers=plain, stream=True, timeout=TIMEOUT) as answer, output.open("wb") as file:
        answer.raise_for_status()
        stated = answer.headers.get("Content-Length", "")
        size = int(stated) if stated.isdecimal() and len(stated) < 20 else None
        if size is not None and size > most:
            raise SourceError(f"{url} serves {size:,} bytes, more than the {most:,} that the file may have")
        until, taken = began + PATIENCE + (most if size is None else size) / SLOWEST, 0
        with tqdm(total=size, unit="B", unit_scale=True, file=sys.stderr, desc=output.name) as bar:
            for piece in _pieces(answer):
                if not taken and looks_like_html(piece[:64]):
                    raise SourceError(f"{url} serves a web page instead of the file; open it in a browser to see why")
                taken += len(piece)
                if taken > most:
                    raise SourceError(f"{url} serves more than the {most:,} bytes that the file may have")
                if time.monotonic() > until:
                    raise SourceError(f"{url} took over {until - began:.0f} s for {taken:,} bytes; try again later")
                file.write(piece)
                bar.update(len(piece))
        if size is not None and taken < size:
            raise SourceError(f"{url} broke off")


def _pieces(answer: requests.Response) -> Iterator[bytes]:
    """The bytes of an answer, each as soon as some are there."""
    while True:
        try:
            piece = answer.raw.read1(PIECE, decode_content=False)
        except urllib3.exceptions.ReadTimeoutError as error:
            raise requests.exceptions.ReadTimeout(error) from None
        except urllib3.exceptions.HTTPError as error:
            raise requests.exceptions.ChunkedEncodingError(error) from None
        if not piece:
            return
        yield piece


def _reason(error: requests.exceptions.RequestException) -> str:
    if isinstance(error, requests.exceptions.TooManyRedirects):
        return "leads in a circle"
    if error.response is not None:
        return f"answers {error.response.status_code} {escaped(error.response.reason)[:80]}"
    if isinstance(error, requests.exceptions.Timeout):
        return f"did not answer within {TIMEOUT[0]:g} s, or paused for over {TIMEOUT[1]:g} s"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "broke off"
    return "cannot be reached"
