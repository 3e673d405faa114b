"""Decode image files to pixels; check their sizes before anything is allocated."""

import io

import numpy as np
from PIL import ExifTags, Image, ImageOps, TiffImagePlugin

from clpapers.datasets.arrays import Split
from clpapers.datasets.files import Files

MOST_PIXELS = 1 << 27  # pixels: more than any photograph here has
FORMATS = {"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "ppm": "PPM"}  # of the published sets' files, by suffix
# A user's own may be of any format that Pillow reads by itself; some need a program beside it, some are no images.
FOREIGN, OTHER = ("EPS", "FLI", "WMF"), ("BUFR", "GRIB", "HDF5", "MPEG", "PDF")
Image.init()
USER_FORMATS = tuple(name for name in Image.ID if name not in FOREIGN + OTHER)
SUFFIXES = {suffix[1:]: name for suffix, name in Image.registered_extensions().items() if name not in OTHER}


def pixels(files: Files, name: str, format: str, count: int) -> np.ndarray:
    """The image `name`, which must have `count` = H · W pixels, as uint8 [H, W, 3]."""
    return np.asarray(_read(files, name, [format], count, count))


def resized(
    files: Files,
    split: str,
    examples: list[tuple[str, int]],
    spec: dict,
    *,
    from_user: bool = False,
    exact: bool = False,
) -> Split:
    """Images of any size, a path and a label each, scaled bilinearly to the shape in `spec`, the aspect ignored.

    A path's suffix, one of FORMATS, names the image's format. Where the shape has one channel, colours become their
    grey. from_user: they are a user's own: of any format that Pillow reads, whatever the suffix, and turned upright
    as they say. exact: no image is scaled.

    Raises SourceError for more images than `spec` gives to `split`, and with `exact` for one of another size.
    """
    if len(examples) > spec[split]:
        raise files.wrong(f"has {len(examples):,} {split} images, over {spec[split]:,}")
    height, width, channels = spec["shape"]
    x = np.empty((len(examples), height, width, channels), np.uint8)
    for row, (path, _) in zip(x, examples, strict=True):
        formats = USER_FORMATS if from_user else [FORMATS.get(path.rpartition(".")[2].lower(), "")]
        stored = _read(files, path, formats, 1, MOST_PIXELS, from_user=from_user).convert("RGB")
        if exact and stored.size != (width, height):
            raise files.wrong(f"{path} is not {height} × {width}")
        scaled = stored.resize((width, height), Image.Resampling.BILINEAR)
        row[:] = scaled if channels == 3 else np.asarray(scaled.convert("L"))[..., None]
    return Split(x, np.array([label for _, label in examples], np.int64))


def _read(
    files: Files,
    name: str,
    formats: list[str] | tuple[str, ...],
    least: int,
    most: int,
    *,
    from_user: bool = False,
) -> Image.Image:
    """The image `name` in colour, or a user's in grey or colour; SourceError unless it has `least` to `most` pixels.

    The bytes of a published set are proven; a user's image is refused where bytes would lose a part of it.
    """
    stored = files.read(name)
    try:
        with Image.open(io.BytesIO(stored), formats=formats) as image:
            width, height = image.size
            fits = least <= width * height <= most
            problem = _unread(image) if from_user and fits else ""
            if fits and not problem:
                image.load()
                return _flat(ImageOps.exif_transpose(image)) if from_user else image.convert("RGB")
    except Exception as error:  # a damaged image can break its decoder in any way
        kind = f"{formats[0]} image" if len(formats) == 1 else "image that can be read"
        raise files.wrong(f"{name} is no whole {kind}") from error
    if problem:
        raise files.wrong(f"{name} {problem}")
    bounds = most if least == most else f"{least} to {most}"
    raise files.wrong(f"{name} is {width} × {height}, not {bounds} pixels")


GREY = ("1", "L", "LA", "La", "I", "F")
FIRST = ("MPO", "PSD")  # formats whose further frames are previews or layers of the first
DEEP = ("JPEG2000", "PNG", "PPM", "TIFF")  # formats whose pixels of 16 bits Pillow gives on the whole scale
BITS, WHITE = 258, 262  # tags of a TIFF: bits a sample, and whether 0 is white (0) or black (1)


def channels(image: Image.Image) -> int:
    """How many channels an opened image needs: 1 for one without colours, or else 3."""
    return 1 if image.mode in GREY or _deep(image) else 3


def sides(image: Image.Image) -> tuple[int, int]:
    """Height and width of an opened image, turned upright as it says."""
    turned = image.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8)
    return image.size if turned else image.size[::-1]


def _deep(image: Image.Image) -> bool:
    """Whether an image has grey pixels of 16 bits; Pillow gives a PPM's as whole numbers."""
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM")


def _unread(image: Image.Image) -> str:
    """The part of an opened image that bytes of grey or colour cannot hold; empty where they hold all."""
    frames = 1 if image.format in FIRST else getattr(image, "n_frames", 1)
    if frames > 1:
        return f"has {frames} frames; save the one that counts"
    whole = image.format in DEEP
    if isinstance(image, TiffImagePlugin.TiffImageFile) and image.format == "TIFF" and _deep(image):
        whole = image.tag_v2.get(BITS) == (16,) and image.tag_v2.get(WHITE) == 1
    if image.mode in ("F", "LAB") or (image.mode == "I" and not _deep(image)) or (_deep(image) and not whole):
        return f"has pixels of mode {image.mode}, which do not say what is white; save it with 8 bits a channel"
    seen_through = image.has_transparency_data and not _deep(image)
    if seen_through and image.convert("RGBA").getchannel("A").getextrema() != (255, 255):  # nobody knows the background
        return f"has pixels that can be seen through (mode {image.mode}); save it on a background"
    return ""


def _flat(image: Image.Image) -> Image.Image:
    """A loaded image as grey (L) or in colour (RGB). 16 bits lose their low byte, as Pillow has it for colours."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image).astype(np.int64).clip(0, 65535) >> 8).astype(np.uint8))
    return image.convert("L" if image.mode in GREY else "RGB")
