"""Hostile bytes in a source's place: refused in a line, before they take memory, and the next source is tried."""

import functools
import gzip
import io
import shutil
import tracemalloc
import zipfile

import numpy as np
import official_formats as made
import pytest

from clpapers.datasets import files, packages
from clpapers.datasets.build import build
from clpapers.datasets.files import SourceError
from clpapers.datasets.formats import cifar_python

CLASSES = ("cat", "dog", "frog")
SIZES = {"train_per_class": 3, "test_per_class": 2}
PICKLES = "cifar-10-batches-py"


@pytest.fixture
def memory():
    """A limit on what a test may take at once, in bytes."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * files.SLACK


# --- decoded content -----------------------------------------------------------------------------------------


def built(content, format, tmp_path, monkeypatch, capsys):
    """What a package of this content is refused for; the stand-in must have served in its place."""

    def client(command, work):
        made.write_tar(work / "some-1.0.0.tgz", content)

    monkeypatch.setattr(packages, "_client", client)
    npm = {"kind": "npm", "package": "some", "version": "1.0.0", "format": format}
    spec = made.entry((4, 6, 3), CLASSES, 30, 9, [npm, {"kind": "standin"}])
    folders = {"data_folder": tmp_path / "data", "downloads": tmp_path / "downloads"}
    facts = build("small", spec, **folders, standin=SIZES, allow_partial=False, out=tmp_path / "out.npz")
    assert facts["source"] == "standin"
    assert list((tmp_path / "downloads/small").iterdir()) == []  # so that it is fetched anew
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert line.startswith("clpapers: small: npm: ")
    return line


def examples():
    return made.random_splits(made.entry((4, 6, 3), CLASSES, 30, 9, []))


@pytest.mark.parametrize(
    "labels",
    [
        b"[" + b"1" * 31 + b"]",
        b"[-" + b"1" * 31 + b"]",
        b"[" * 100_000,
        b"9" * 5000,
        b"[1e400]",
        b'{"a":' * 50_000,
        b"",
    ],
)
def test_labels_in_json(labels, tmp_path, monkeypatch, capsys):
    content = made.image_rows_files(examples()) | {"package/test_lables.json": labels}
    built(content, "image_rows", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("label", [10**30, -(10**30), 2**63, 10**4000])
def test_labels_in_a_pickle(label, tmp_path, monkeypatch, capsys):
    content = made.cifar10_files(examples(), list(CLASSES))
    batch = {"data": np.zeros((6, 72), np.uint8), "labels": [label] * 6}
    content[f"{PICKLES}/data_batch_2"] = made.python2_pickle(batch)
    built(content, "cifar_python", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("name", ["9" * 5000, "1" * 5000 + "_dog", "\u0661", "0" * 4999 + "1"])
def test_numbers_in_names(name, tmp_path, monkeypatch, capsys):
    content = {"package/test/" + name + "_cat.webp": b"x", "package/train/0_cat.webp": b"x"}
    built(content, "mosaics", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("name", ["x\nclpapers: all is well", "\x1b[2J", "\N{RIGHT-TO-LEFT OVERRIDE}"])
def test_names_that_would_fake_a_line(name, tmp_path, monkeypatch, capsys):
    content = {f"package/test/7_{name}.webp": b"x", "package/train/0_cat.webp": b"x"}
    line = built(content, "mosaics", tmp_path, monkeypatch, capsys)
    assert ascii(name)[1:-1] in line


@pytest.mark.parametrize(
    "stored",
    [
        b"\x80\x02Nr\xff\xff\xff\x0f.",  # remembered as number 268,435,455 of what it remembers
        b"\x80\x02Nr\xff\xff\xff\xff.",
        b"\x80\x02Np999999999999\n.",
        b"\x80\x05\x96" + (1 << 33).to_bytes(8, "little") + b".",  # a bytearray of 8 GB
        b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b".",  # bytes of 1 TB
        b"\x80\x04\x95" + (1 << 62).to_bytes(8, "little") + b"N.",  # a frame
        b"\x80\x02\x8b\xff\xff\xff\x7f.",  # a number of 2 GB
        b"\x80\x02\x82\x01.",  # an extension
        b"\x80\x05\x97.",  # what is not in the file
        b"\x80\x02X\xff\xff\xff\x7f.",
        b"(" * 100_000 + b".",
        b"I" + b"9" * 5000 + b"\n.",
    ],
)
def test_pickles_that_ask_for_memory(stored, memory):
    spec = made.entry((4, 6, 3), CLASSES, 30, 9, [])
    content = made.cifar10_files(examples(), list(CLASSES)) | {f"{PICKLES}/batches.meta": stored}
    with pytest.raises(SourceError, match=r"batches\.meta"):
        cifar_python.decode(files.Files("here", content, bytes), spec)


# --- archives ------------------------------------------------------------------------------------------------


def read_all(path):
    held = files.archive(path)
    return {name: held.read(name) for name in held.paths}


def refused(path, content=None):
    """The line that an archive, or a member of it, is refused with."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SourceError) as refusal:
        read_all(path)
    assert str(path) in str(refusal.value)
    assert str(refusal.value).isprintable()
    return str(refusal.value)


def header(name=b"a", size=b"%011o\0" % 0, kind=b"0"):
    """A member's header as a tar has it."""
    block = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size + b"0" * 11 + b"\0" + b" " * 8 + kind
    block = block.ljust(257, b"\0") + b"ustar\0" + b"00"
    block = block.ljust(512, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def pax(**records):
    """An extended header that says this of the next member."""
    lines = b""
    for key, value in records.items():
        line = f" {key.replace('_', '.')}={value}\n".encode("utf-8", "surrogateescape")
        length = len(line) + len(str(len(line) + 2))
        lines += f"{length}".encode() + line
    return header(size=b"%011o\0" % len(lines), kind=b"x") + lines.ljust(-(-len(lines) // 512) * 512, b"\0")


@functools.cache
def zeros(size=4 * files.SLACK):
    """So many zero bytes, gzipped: by default more than a test may take."""
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=9) as packed:
        for _ in range(size >> 20):
            packed.write(bytes(1 << 20))
    return stream.getvalue()


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g", b"X"])
def test_a_header_of_a_gigabyte(kind, tmp_path, memory):
    content = gzip.compress(header(size=b"%011o\0" % (1 << 30), kind=kind)) + zeros()
    assert "a header of 1073741824 bytes" in refused(tmp_path / "x.tgz", content)


def test_what_is_behind_the_end(tmp_path, memory):
    content = gzip.compress(header(size=b"%011o\0" % (1 << 28))) + zeros()
    assert "unpacks to over" in refused(tmp_path / "x.tgz", content)


@pytest.mark.parametrize("size", ["-100000000000", "-1", "-512", str(10**30)])
def test_sizes_in_an_extended_header(size, tmp_path):
    refused(tmp_path / "x.tar", pax(size=size) + header(size=b"%011o\0" % 4) + b"abcd".ljust(2048, b"\0"))


@pytest.mark.parametrize(
    "records",
    [
        {"GNU_sparse_major": "1", "GNU_sparse_minor": "0", "GNU_sparse_realsize": "9" * 30},
        {"GNU_sparse_map": "0,1,2"},
        {"GNU_sparse_map": "x"},
        {"GNU_sparse_size": "1" * 5000},
        {"GNU_sparse_size": str(10**18), "GNU_sparse_map": f"0,{10**18}"},
        {"GNU_sparse_major": "x"},
        {"size": "x"},
        {"size": "9" * 5000},
    ],
)
def test_sparse_members_and_sizes_that_are_none(records, tmp_path, memory):
    path = tmp_path / "x.tar"
    path.write_bytes(pax(**records) + header(size=b"%011o\0" % 4) + b"abcd".ljust(2048, b"\0"))
    try:
        assert read_all(path).keys() == {"a"}  # where nobody could take it for sparse
    except SourceError as error:
        said = str(error)
    else:
        said = str(path)
    assert str(path) in said


def test_an_old_sparse_member(tmp_path, memory):
    refused(tmp_path / "x.tar", header(size=b"%011o\0" % 0, kind=b"S") + bytes(1024))


@pytest.mark.parametrize("size", [b"\x80" + b"\xff" * 11, b"\xff" * 12, b"77777777777\0"])
def test_sizes_in_base_256(size, tmp_path, memory):
    (tmp_path / "x.tar").write_bytes(header(size=size) + b"abcd".ljust(1024, b"\0"))
    refused(tmp_path / "x.tar")


def test_names_in_zips_that_are_no_utf8(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("\N{BLACK SUN WITH RAYS}", b"1")
    refused(tmp_path / "x.zip", stream.getvalue().replace("\N{BLACK SUN WITH RAYS}".encode(), b"\xff\xfe\xfd"))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zips_packed_in_other_ways(method, tmp_path, memory):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
        archive.writestr("a", bytes(1 << 20))
    assert "another method than deflate" in refused(tmp_path / "x.zip")


def test_a_zip_bomb(tmp_path, memory):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a", "w") as member:
        for _ in range(256):
            member.write(bytes(1 << 20))
    assert "a unpacks to over" in refused(tmp_path / "x.zip")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_a_debian_package_that_is_a_bomb(tmp_path, memory):
    bomb = gzip.compress(header(size=b"%011o\0" % (1 << 28))) + zeros()
    content = b"!<arch>\n"
    members = {"debian-binary": b"2.0\n", "control.tar.gz": gzip.compress(bytes(1024)), "data.tar.gz": bomb}
    for name, member in members.items():
        content += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(member):<10}`\n".encode()
        content += member + b"\n" * (len(member) % 2)
    assert "unpacks to over" in refused(tmp_path / "x.deb", content)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
@pytest.mark.parametrize("content", [b"", b"!<arch>\n", b"x" * 1000])
def test_a_debian_package_that_is_none(content, tmp_path):
    refused(tmp_path / "x.deb", content)


@pytest.mark.parametrize("name", ["a\nb/../../c", "\x1b[2J/../../c"])
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_names_in_refusals_are_one_line(form, name, tmp_path):
    write = made.write_zip if form == "zip" else made.write_tar
    write(tmp_path / f"x.{form}", {name: b"1"}, *(["w"] if form == "tar" else []))
    assert "leads out of the archive" in refused(tmp_path / f"x.{form}")


def test_the_disks_own_errors_are_not_blamed_on_the_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.archive(tmp_path / "x.tar")
