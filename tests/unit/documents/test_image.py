from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageDraw

from document_builders import image_bytes
from pagemill.documents.image import ImageReader
from pagemill.documents.options import RenderOptions
from pagemill.documents.reader import Raster, open_reader
from pagemill.domain.errors import CorruptDocumentError, LimitExceededError, UnsupportedFormatError

QUADRANTS = {"red": (0, 0), "green": (1, 0), "blue": (0, 1), "white": (1, 1)}


def quadrants(size: tuple[int, int] = (80, 40)) -> Image.Image:
    """Red and green above blue and white: tells every orientation apart."""
    image = Image.new("RGB", size)
    draw = ImageDraw.Draw(image)
    for colour, (column, row) in QUADRANTS.items():
        left, top = column * size[0] // 2, row * size[1] // 2
        draw.rectangle((left, top, left + size[0] // 2, top + size[1] // 2), fill=colour)
    return image


def read(path: Path, data: bytes, index: int = 0, **options: object) -> Raster:
    path.write_bytes(data)
    reader = open_reader(path, path.name, (), RenderOptions(**options))
    assert isinstance(reader, ImageReader)
    try:
        page = reader.pages()[index]
        raster = reader.render(index, text_layer=True)
        swapped = raster.image.width * page.height_pt == pytest.approx(raster.image.height * page.width_pt, rel=0.05)
        assert swapped, "the page announces other proportions than the image has"
        return raster
    finally:
        reader.close()


def assert_quadrants(image: Image.Image, tolerance: int = 40) -> None:
    expected = {"red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255), "white": (255, 255, 255)}
    for colour, (column, row) in QUADRANTS.items():
        at = (image.width * (1 + 2 * column) // 4, image.height * (1 + 2 * row) // 4)
        assert np.allclose(image.getpixel(at), expected[colour], atol=tolerance), (colour, image.getpixel(at))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("JPEG", {"quality": 95}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("WEBP", {"lossless": True}),
        ("GIF", {}),
        ("BMP", {}),
        ("PPM", {}),
        ("JPEG2000", {}),
        ("AVIF", {"quality": 95}),
    ],
)
def test_every_format_is_read_by_content_whatever_its_name(
    tmp_path: Path, kind: str, options: dict[str, object]
) -> None:
    raster = read(tmp_path / "document.pdf", image_bytes(quadrants(), kind, **options))
    assert raster.image.size == (80, 40)
    assert_quadrants(raster.image)
    assert raster.text_layer is None


def test_heic_is_read_where_its_package_is_installed(tmp_path: Path, shared_data: Path) -> None:
    pytest.importorskip("pi_heif")
    raster = read(tmp_path / "x.heic", (shared_data / "robustness/image__hopper.heif").read_bytes())
    assert raster.image.size == (128, 128)
    assert len(raster.image.getcolors(2**16) or range(2**16)) > 100


def test_without_its_package_heic_is_unsupported_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pi_heif", None)
    head = b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"
    with pytest.raises(UnsupportedFormatError, match=r"pagemill\[heic\]"):
        read(tmp_path / "x.heic", head)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "TIFF", "PNG", "WEBP"])
def test_orientation_tags_are_honoured(tmp_path: Path, kind: str, orientation: int) -> None:
    turns = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = quadrants() if orientation == 1 else quadrants().transpose(turns[orientation])
    exif = Image.Exif()
    exif[0x0112] = orientation
    raster = read(tmp_path / "x", image_bytes(stored, kind, exif=exif))
    assert raster.image.size == (80, 40)
    assert_quadrants(raster.image, tolerance=90)


def test_large_images_are_fitted_and_small_ones_left_alone(tmp_path: Path) -> None:
    assert read(tmp_path / "a", image_bytes(quadrants((1000, 400)), "PNG"), long_side=500).image.size == (500, 200)
    assert read(tmp_path / "b", image_bytes(quadrants((60, 20)), "PNG"), long_side=500).image.size == (60, 20)
    assert read(tmp_path / "c", image_bytes(quadrants((4000, 1600)), "JPEG"), long_side=500).image.size == (500, 200)


def test_grey_pixels_become_one_channel(tmp_path: Path) -> None:
    grey = Image.linear_gradient("L")
    raster = read(tmp_path / "x", image_bytes(grey.convert("RGB"), "PNG"))
    assert raster.image.mode == "L"
    assert raster.image.tobytes() == grey.tobytes()


def test_every_tiff_frame_is_a_page_and_thumbnails_are_not(tmp_path: Path) -> None:
    thumbnail = quadrants((20, 10))
    thumbnail.encoderinfo = {"tiffinfo": {254: 1}}
    second = Image.new("L", (30, 60), 77)
    second.encoderinfo = {"tiffinfo": {254: 0}}
    data = image_bytes(quadrants(), "TIFF", save_all=True, append_images=[thumbnail, second])
    path = tmp_path / "x.tif"
    path.write_bytes(data)
    reader = open_reader(path, "x.tif", (), RenderOptions())
    assert [(page.index, page.width_pt, page.height_pt) for page in reader.pages()] == [(0, 80, 40), (1, 30, 60)]
    assert reader.render(1, text_layer=False).image.getpixel((5, 5)) == 77
    assert_quadrants(reader.render(0, text_layer=False).image)
    reader.close()


def test_an_animation_gives_its_first_picture(tmp_path: Path) -> None:
    data = image_bytes(quadrants(), "GIF", save_all=True, append_images=[Image.new("RGB", (80, 40))], loop=0)
    raster = read(tmp_path / "x.gif", data)
    assert_quadrants(raster.image)


def test_too_many_frames_are_over_the_limit(tmp_path: Path) -> None:
    page = Image.new("L", (8, 8))
    (tmp_path / "x.tif").write_bytes(image_bytes(page, "TIFF", save_all=True, append_images=[page] * 4))
    with pytest.raises(LimitExceededError, match="more than 3 pages"):
        open_reader(tmp_path / "x.tif", "x.tif", (), RenderOptions(max_pages=3))


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG2000"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path: Path, kind: str) -> None:
    ramp = np.linspace(0, 65535, 256, dtype=np.uint16).reshape(16, 16)
    raster = read(
        tmp_path / "x",
        image_bytes(Image.fromarray(ramp), kind, **({"irreversible": False} if kind == "JPEG2000" else {})),
    )
    assert raster.image.mode == "L"
    assert np.allclose(np.asarray(raster.image).ravel(), np.arange(256), atol=1)


def test_twelve_bits_in_sixteen_are_not_nearly_black(tmp_path: Path) -> None:
    ramp = np.linspace(0, 4095, 256, dtype=np.uint16).reshape(16, 16)
    raster = read(tmp_path / "x", image_bytes(Image.fromarray(ramp), "TIFF"))
    assert raster.image.getextrema() == (0, 255)


def test_floating_point_between_nought_and_one_is_scaled(tmp_path: Path) -> None:
    ramp = np.linspace(0, 1, 256, dtype=np.float32).reshape(16, 16)
    raster = read(tmp_path / "x", image_bytes(Image.fromarray(ramp), "TIFF"))
    assert raster.image.getextrema() == (0, 255)


def test_cmyk_keeps_its_colours(tmp_path: Path) -> None:
    raster = read(tmp_path / "x", image_bytes(quadrants().convert("CMYK"), "JPEG", quality=95))
    assert_quadrants(raster.image)


def test_inverted_cmyk_of_adobe_keeps_its_colours(tmp_path: Path) -> None:
    data = image_bytes(quadrants().convert("CMYK"), "JPEG", quality=95)
    assert b"Adobe" in data, "Pillow writes CMYK the way Adobe does"
    assert_quadrants(read(tmp_path / "x", data).image)


def test_cielab_is_converted(tmp_path: Path) -> None:
    to_lab = ImageCms.buildTransform(ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB")
    raster = read(tmp_path / "x", image_bytes(ImageCms.applyTransform(quadrants(), to_lab), "TIFF"))
    assert_quadrants(raster.image)


def test_one_bit_group_four_is_scaled_smoothly(tmp_path: Path) -> None:
    page = Image.new("1", (800, 400), 1)
    ImageDraw.Draw(page).rectangle((100, 100, 300, 300), fill=0)
    raster = read(tmp_path / "x", image_bytes(page, "TIFF", compression="group4"), long_side=200)
    assert raster.image.getpixel((50, 50)) == 0
    assert raster.image.getpixel((150, 50)) == 255


@pytest.mark.parametrize(("ink", "background"), [("black", 255), ("white", 0), ("grey", 255)])
def test_text_on_a_transparent_ground_stays_visible(tmp_path: Path, ink: str, background: int) -> None:
    page = Image.new("RGBA", (200, 100), (255, 255, 255, 0))
    ImageDraw.Draw(page).rectangle((20, 40, 180, 60), fill=ink)
    raster = read(tmp_path / "x", image_bytes(page, "PNG"))
    assert raster.image.getpixel((5, 5)) == background
    assert raster.image.getpixel((100, 50)) != background


def test_a_photograph_with_a_few_clear_corners_is_laid_on_white(tmp_path: Path) -> None:
    page = Image.new("RGBA", (100, 100), (230, 230, 230, 255))
    ImageDraw.Draw(page).rectangle((0, 0, 9, 9), fill=(0, 0, 0, 0))
    assert read(tmp_path / "x", image_bytes(page, "PNG")).image.getpixel((5, 5)) == 255


def test_a_transparent_palette_colour_becomes_white(tmp_path: Path) -> None:
    page = Image.new("P", (40, 40), 0)
    page.putpalette([10, 20, 30, 0, 0, 0])
    page.paste(1, (10, 10, 30, 30))
    raster = read(tmp_path / "x", image_bytes(page, "PNG", transparency=0))
    assert raster.image.getpixel((0, 0)) == 255
    assert raster.image.getpixel((20, 20)) == 0


def test_a_bomb_is_refused_by_its_header(tmp_path: Path) -> None:
    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n"
    for chunk in (b"IHDR" + header, b"IDAT" + zlib.compress(bytes(1000)), b"IEND"):
        data += struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    with pytest.raises(LimitExceededError, match=r"50000 x 50000 pixels; the limit is 200 million"):
        read(tmp_path / "x", data)


def test_a_truncated_photograph_keeps_what_is_there_and_says_so(tmp_path: Path) -> None:
    photo = Image.effect_noise((400, 400), 80)
    data = image_bytes(photo, "JPEG")
    raster = read(tmp_path / "x", data[: len(data) * 2 // 3])
    assert "cut short" in raster.warnings[0]
    top = raster.image.crop((0, 0, 400, 200)).tobytes()
    assert top == Image.open(io.BytesIO(data)).crop((0, 0, 400, 200)).tobytes()


@pytest.mark.parametrize("keep", [20, 45])
def test_an_image_of_which_nothing_is_left_is_damaged(tmp_path: Path, keep: int) -> None:
    data = image_bytes(quadrants(), "PNG")
    with pytest.raises(CorruptDocumentError, match="damaged PNG") as caught:
        read(tmp_path / "scan.png", data[:keep])
    assert str(tmp_path) not in str(caught.value)


def test_leniency_with_one_file_does_not_leak_to_others(tmp_path: Path) -> None:
    photo = image_bytes(Image.effect_noise((400, 400), 80), "JPEG")
    read(tmp_path / "x", photo[: len(photo) // 2])
    with pytest.raises(OSError, match="truncated"):
        Image.open(io.BytesIO(photo[: len(photo) // 2])).load()
