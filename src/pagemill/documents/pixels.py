"""From any Pillow mode to 8 bits of grey or RGB on a background that keeps the text visible."""

from __future__ import annotations

from typing import cast

from PIL import Image, ImageStat

_RESIZABLE = frozenset({"L", "RGB", "RGBA", "CMYK", "LAB", "YCbCr"})
_DEEP = frozenset({"I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_LIGHT_INK = 170
"""Mean grey level (0 to 255) from which what is drawn on a transparent background counts as light ink."""


def to_resizable(image: Image.Image) -> Image.Image:
    """Converts to a mode that can be resampled without loss: 8 bits, no palette, transparency as an alpha channel."""
    if image.mode in _DEEP:
        return _deep_to_grey(image)
    if image.has_transparency_data:
        return image if image.mode == "RGBA" else image.convert("RGBA")
    if image.mode in _RESIZABLE:
        return image
    if image.mode == "1":
        return image.convert("L")
    return image.convert("RGB")


def to_grey_or_rgb(image: Image.Image) -> Image.Image:
    """Converts what `to_resizable` gives to `L` or `RGB`; pixels that are all grey become `L`."""
    if image.mode == "L":
        return image
    if image.mode == "RGBA":
        image = _flatten(image)
    elif image.mode == "LAB":
        image = _lab_to_rgb(image)
    elif image.mode != "RGB":
        image = image.convert("RGB")
    return grey_if_colourless(image)


def grey_if_colourless(image: Image.Image) -> Image.Image:
    """The pixels of an `RGB` or `RGBX` image as `L` where red, green and blue are equal everywhere, else as `RGB`."""
    red = image.getchannel(0)
    plane = red.tobytes()
    if plane == image.getchannel(1).tobytes() and plane == image.getchannel(2).tobytes():
        return red
    return image if image.mode == "RGB" else image.convert("RGB")


def _deep_to_grey(image: Image.Image) -> Image.Image:
    """Scales 12, 16 and 32 bits and floating point to 8; the full range is taken from the largest value."""
    _, high = cast("tuple[float, float]", image.getextrema())  # one band, so no tuple of pairs
    limits = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 4095.0, 65535.0)
    full = next((limit for limit in limits if high <= limit), high)
    scaled = image.convert("F").point(lambda value: value * (255.0 / full) + 0.5)
    return scaled.convert("L")


def _flatten(image: Image.Image) -> Image.Image:
    """Lays an image with alpha on white, or on black where its ink is so light that white would hide it."""
    alpha = image.getchannel("A")
    background = "white"
    if alpha.getextrema() != (255, 255):
        opaque = alpha.point(lambda value: 255 if value > 127 else 0)
        ink = ImageStat.Stat(image.convert("L"), opaque)
        covers_little = ImageStat.Stat(opaque).mean[0] < 0.7 * 255
        if covers_little and ink.count[0] and ink.mean[0] >= _LIGHT_INK:
            background = "black"
    canvas = Image.new("RGB", image.size, background)
    canvas.paste(image, mask=alpha)
    return canvas


def _lab_to_rgb(image: Image.Image) -> Image.Image:
    from PIL import ImageCms  # noqa: PLC0415 - loads a library that only CIELAB images need

    rgb = ImageCms.profileToProfile(
        image, ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), outputMode="RGB"
    )
    if rgb is None:
        raise ValueError("cannot convert from CIELAB")
    return rgb
