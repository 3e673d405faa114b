"""Download one file over HTTP; it gets its name only after its checksum is proven."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pooch
import requests

from clpapers.datasets.files import SourceError, looks_like_html

TIMEOUT = (10.0, 30.0)  # seconds: to connect, and between two pieces of the answer


def download(urls: list[str], filename: str, digest: str, folder: Path, algorithm: str = "md5") -> Path:
    """Fetch `folder/filename` from the first of `urls` that serves it, unless it is there; returns its path.

    The file's checksum must begin with `digest`. A file that is there but wrong is fetched anew. A download stays in a
    temporary folder, removed on any failure, until it is proven. Raises SourceError, with every URL's fault, where none
    serves; OSError where the disk does not take the file.
    """
    kept, faults = folder / filename, []
    if kept.exists() and pooch.file_hash(kept, algorithm).startswith(digest):
        return kept
    for url in urls:
        try:
            with workplace(folder) as work:
                fetched = work / filename
                _fetch(url, fetched)
                if pooch.file_hash(fetched, algorithm).startswith(digest):
                    return fetched.replace(kept)
            official = f"{algorithm.upper().replace('SHA', 'SHA-')} {digest}"
            faults.append(f"{url} serves other bytes than the official file ({official}); they were not kept")
        except SourceError as error:
            faults.append(str(error))
        except requests.exceptions.RequestException as error:  # an OSError too, which callers would take for the disk's
            faults.append(f"{url} {_reason(error)}")
    raise SourceError("; ".join(faults))


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


def _fetch(url: str, output: Path) -> None:
    pooch.HTTPDownloader(timeout=TIMEOUT, progressbar=True)(url, output, None)
    with open(output, "rb") as stream:
        if looks_like_html(stream.read(64)):
            raise SourceError(f"{url} serves a web page instead of the file; open it in a browser to see why")


def _reason(error: requests.exceptions.RequestException) -> str:
    if error.response is not None:
        return f"answers {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.Timeout):
        return f"did not answer within {TIMEOUT[0]:g} s, or paused for over {TIMEOUT[1]:g} s"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "broke off"
    return "cannot be reached"
