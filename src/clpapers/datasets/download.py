"""One file over HTTP, proven by its MD5 before it stands under its own name."""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pooch
import requests

from clpapers.datasets.files import SourceError, looks_like_html

TIMEOUT = (10.0, 30.0)  # seconds: to connect, and between two pieces of the answer


def download(urls: list[str], filename: str, md5: str, folder: Path) -> Path:
    """`folder/filename` with this MD5, fetched from the first of `urls` that serves it unless already there.

    A file that is there but wrong is fetched anew. Until its MD5 is proven a download stands in a temporary
    folder, removed on any failure. SourceError, with every URL's fault, where none serves; OSError where the
    disk does not take the file.
    """
    pooch.get_logger().setLevel(logging.WARNING)
    kept, faults = folder / filename, []
    if kept.exists() and pooch.file_hash(kept, "md5") == md5:
        return kept
    for url in urls:
        try:
            with workplace(folder) as work:
                fetched = pooch.retrieve(url, f"md5:{md5}", filename, work, downloader=_fetch)
                return Path(fetched).replace(kept)
        except SourceError as error:
            faults.append(str(error))
        except requests.exceptions.RequestException as error:  # an OSError, so it stands before any other
            faults.append(f"{url} {_reason(error)}")
        except ValueError as error:
            if "hash" not in str(error):
                raise
            faults.append(f"{url} serves other bytes than the official file (MD5 {md5}); they were not kept")
    raise SourceError("; ".join(faults))


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """An empty folder inside `folder`, gone afterwards: on the same disk, so moving a file out is a rename.

    What a killed process left is cleared away too, once it is a day old: no fetch takes that long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(".fetching-*"):
        if time.time() - left.stat().st_mtime > 86400:
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.resolve()) as work:
        yield Path(work)


def _fetch(url: str, output: str, pooch_: object) -> None:
    pooch.HTTPDownloader(timeout=TIMEOUT, progressbar=True)(url, output, pooch_)
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
