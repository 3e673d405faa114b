"""Stand-ins: synthetic images with the shape and the classes of a real data set."""

import numpy as np

from clpapers.datasets.arrays import Split, Splits, unit_rows
from clpapers.randomness import generator

MODES = 3  # prototypes of a class
RADIUS = 3  # highest spatial frequency of the shared structure, in cycles an image
CLASS_SHARE = 0.8  # share of a prototype that is its class's own and not common to all classes
JITTER = 0.5  # deviation of an image from its prototype; larger with colour, whose channels tell more
SHIFT = 0.12  # largest translation, as a part of the image's side
NOISE = 22.0  # standard deviation of the pixel noise, in grey levels
CONTRAST = 45.0  # standard deviation of the structure, in grey levels
INSTANCE = 0.7  # share of an object, where images are frames of recordings, that is its own and not its class's
DENSITY = 0.15  # share of the attributes that a class has


def make(name: str, spec: dict, train_per_class: int, test_per_class: int) -> Splits:
    """A stand-in for data set `name`: balanced, deterministic, with the shape and classes of `spec`.

    Each class has MODES prototypes: low-frequency waves whose amplitudes are partly common to all classes,
    partly the mode's own. Where the set has attributes, the own part is a linear map of the class's attributes, so
    that learning some classes helps with others. An image is a prototype with jittered amplitudes, shifted (a phase
    for each wave), of varied gain and brightness, with noise. Equal arguments give equal bytes on one machine; another
    machine may round a pixel differently, so no checksum of a stand-in is published.

    Where the set has `instances`, a class has one prototype and that many objects in training. Each object is the
    prototype with a part of its own, and the frames are shared out equally (earlier objects get one more). Jitter,
    shift, gain and brightness move along half a turn from the first frame of an object to its last. The test split
    shows one object of each class: a new one or, if it is the `demonstrator` set, the first one in another movement.
    """
    height, width, channels = spec["shape"]
    classes, objects = len(spec["classes"]), spec.get("instances", 0)
    side = range(-RADIUS, RADIUS + 1)
    waves = np.array([(u, v) for u in side for v in side if (u, v) > (0, 0)])  # one of ±(u, v), which are the same wave
    waves = waves[np.hypot(*waves.T) <= RADIUS]
    decay = 1 / np.hypot(*waves.T)
    rng = generator(0, f"stand-in {name} prototypes")
    common = _amplitudes(rng, (1, 1, channels, len(waves)))
    of_classes = attributes(name, spec)
    modes = objects + 1 if objects else MODES  # the last object is new in the test
    own = _amplitudes(rng, (classes if of_classes is None else spec["attributes"], modes, channels, len(waves)))
    if of_classes is not None:
        own = np.tensordot(of_classes, own, 1)  # the variance stays 1, since the rows have length 1
    if objects:
        own = np.sqrt(1 - INSTANCE**2) * _amplitudes(rng, own[:, :1].shape) + INSTANCE * own
    prototypes = decay * (np.sqrt(1 - CLASS_SHARE**2) * common + CLASS_SHARE * own)

    rows, columns = np.meshgrid(np.arange(height) / height, np.arange(width) / width, indexing="ij")
    phase = 2 * np.pi * (waves[:, :1] * rows.ravel() + waves[:, 1:] * columns.ravel())
    basis = np.concatenate([np.cos(phase), -np.sin(phase)]).astype(np.float32)  # [2 · waves, H · W]
    basis *= CONTRAST / np.linalg.norm(decay)

    def split(which: str, per_class: int) -> Split:
        rng = generator(0, f"stand-in {name} {which}")
        y = np.repeat(np.arange(classes), per_class)
        n = len(y)
        instance = frame = None
        if objects:
            shown_objects = min(objects, per_class) if which == "train" else 1
            of_class = np.arange(per_class) * shown_objects // per_class
            first, frames = np.searchsorted(of_class, of_class), np.bincount(of_class)[of_class]
            instance, frame = (
                shown_objects * y + np.tile(of_class, classes),
                np.tile(np.arange(per_class) - first, classes),
            )
            turn = np.pi * frame / np.tile(frames, classes)

        def normal(*shape: int) -> np.ndarray:
            """Standard normal draws for each image, [n, *shape]; between frames of an instance they change little."""
            if not objects:
                return rng.standard_normal((n, *shape))
            start, side = rng.standard_normal((2, classes * shown_objects, *shape))
            angle = turn.reshape(n, *(1 for _ in shape))
            return np.cos(angle) * start[instance] + np.sin(angle) * side[instance]

        if not objects:
            mode = rng.integers(MODES, size=n)
        elif which == "train":
            mode = np.tile(of_class, classes)
        else:
            mode = np.full(n, 0 if spec["test_set"] == "demonstrator" else objects)
        amplitude = prototypes[y, mode]
        jitter = normal(*amplitude.shape[1:]) + 1j * normal(*amplitude.shape[1:])
        amplitude = amplitude + JITTER * np.sqrt(channels) * decay * jitter
        shift = SHIFT / 2 * normal(2) if objects else rng.uniform(-SHIFT, SHIFT, (n, 2))
        amplitude *= np.exp(-2j * np.pi * shift @ waves.T)[:, None]
        amplitude *= np.exp(0.2 * normal(1, 1))
        parts = np.concatenate([amplitude.real, amplitude.imag], axis=-1).astype(np.float32)
        image = parts.reshape(n * channels, -1) @ basis
        image += NOISE * rng.standard_normal(image.shape, dtype=np.float32)
        image = image.reshape(n, channels, height, width)
        image += (127 + 12 * normal(1, 1, 1)).astype(np.float32)
        pixels = np.clip(np.rint(image), 0, 255).astype(np.uint8).transpose(0, 2, 3, 1)
        return Split(pixels, y, instance, frame)

    return {"train": split("train", train_per_class), "test": split("test", test_per_class)}


def attributes(name: str, spec: dict) -> np.ndarray | None:
    """Sparse random class attributes, float32 [C, A], each row of length 1; None where the real set has none."""
    if "attributes" not in spec:
        return None
    rng = generator(0, f"stand-in {name} attributes")
    strength = rng.exponential(size=(len(spec["classes"]), spec["attributes"]))
    least = np.quantile(strength, 1 - DENSITY, axis=1, keepdims=True)
    return unit_rows(np.where(strength < least, 0, strength))


def _amplitudes(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Complex standard normal amplitudes."""
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
