from __future__ import annotations

import io
import re
from pathlib import Path

import pikepdf
import pypdfium2
import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

from document_builders import PAGE, content_pdf, render_pdf, text_pdf
from pagemill.documents.options import RenderOptions
from pagemill.documents.pdf import PdfReader
from pagemill.documents.reader import fit
from pagemill.domain.errors import CorruptDocumentError, EncryptedDocumentError, LimitExceededError


def opened(path: Path, *passwords: str, **options: object) -> PdfReader:
    return PdfReader(path, path.name, passwords, RenderOptions(**options))


def resized(path: Path, box: list[float], **entries: object) -> Path:
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.pages[0].MediaBox = box
        for key, value in entries.items():
            pdf.pages[0][f"/{key}"] = value
        pdf.save(path)
    return path


@pytest.mark.parametrize(
    ("size", "pixels"), [((595, 842), (1089, 1540)), ((842, 595), (1540, 1089)), ((14000, 7000), (1540, 770))]
)
def test_pages_are_rendered_to_the_long_side_whatever_their_points(
    tmp_path: Path, size: tuple[float, float], pixels: tuple[int, int]
) -> None:
    assert render_pdf(text_pdf(tmp_path / "x.pdf", size=size)).image.size == pixels


def test_tiny_pages_are_not_blown_up_beyond_the_scale(tmp_path: Path) -> None:
    assert render_pdf(text_pdf(tmp_path / "x.pdf", size=(100, 50))).image.size == (600, 300)
    assert render_pdf(resized(text_pdf(tmp_path / "y.pdf"), [0, 0, 1, 1])).image.size == (6, 6)


def test_pixels_are_those_of_pdfium_itself(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "x.pdf", "Hello\nworld", size=(300, 400))
    expected = pypdfium2.PdfDocument(path)[0].render(scale=2).to_pil()
    raster = render_pdf(path, long_side=800)
    assert raster.image.mode == "L"
    assert raster.image.convert("RGB").tobytes() == expected.tobytes()


def test_colour_stays_colour(tmp_path: Path) -> None:
    raster = render_pdf(content_pdf(tmp_path / "x.pdf", b"1 0 0 rg 0 0 300 400 re f"))
    assert raster.image.mode == "RGB"
    assert raster.image.getpixel((9, 9)) == (255, 0, 0)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_rotation_is_part_of_the_size(tmp_path: Path, turn: int) -> None:
    path = resized(content_pdf(tmp_path / "x.pdf", b"0 g 0 0 30 30 re f"), [0, 0, *PAGE], Rotate=turn)
    (page,) = opened(path).pages()
    assert (page.width_pt, page.height_pt) == (PAGE if turn % 180 == 0 else PAGE[::-1])
    image = render_pdf(path, long_side=400).image
    corner = {0: (5, -5), 90: (5, 5), 180: (-5, 5), 270: (-5, -5)}[turn]
    assert image.getpixel(tuple(at % side for at, side in zip(corner, image.size, strict=True))) == 0


def test_the_crop_box_is_what_is_seen(tmp_path: Path) -> None:
    path = content_pdf(tmp_path / "x.pdf", b"0 g 100 100 100 100 re f", CropBox=[100, 100, 200, 200])
    raster = render_pdf(path)
    assert raster.image.size == (600, 600)
    assert raster.image.getextrema() == (0, 0)


def test_a_page_far_too_long_and_narrow_is_refused(tmp_path: Path) -> None:
    path = resized(text_pdf(tmp_path / "x.pdf"), [0, 0, 595, 2_147_483_648])
    with pytest.raises(LimitExceededError, match="too long and narrow"):
        render_pdf(path)


def test_invalid_boxes_fall_back_to_a_page(tmp_path: Path) -> None:
    assert render_pdf(resized(text_pdf(tmp_path / "x.pdf"), [0, 0, 0, 0])).image.size == (1190, 1540)


def test_too_many_pages_are_over_the_limit(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "x.pdf", *"abc")
    with pytest.raises(LimitExceededError, match=r"3 pages; the limit is 2"):
        opened(path, max_pages=2).pages()


def test_damaged_page_slots_cost_only_themselves(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "x.pdf", *(f"page {number}" for number in range(13)))
    data = path.read_bytes()
    slots = re.search(rb"/Kids \[(.*?)\]", data, re.DOTALL).group(1).split(b" R")[:-1]
    for bad in (3, 7, 11):
        data = data.replace(slots[bad] + b" R", b" 0 0 R".rjust(len(slots[bad]) + 2), 1)
    path.write_bytes(data)
    reader = opened(path)
    pages = reader.pages()
    assert len(pages) == 13
    for page in pages:
        if page.index in (3, 7, 11):
            with pytest.raises(CorruptDocumentError, match=rf"Page {page.index + 1} of x\.pdf"):
                reader.render(page.index, text_layer=True)
        else:
            assert reader.render(page.index, text_layer=True).text_layer.spans[0].text == f"page {page.index}"
    assert "4, 8, 12" in reader.warnings[0]


def encrypted(path: Path, password: str, revision: int, owner: str = "owner") -> Path:
    text_pdf(path)
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        aes = revision >= 4
        encryption = pikepdf.Encryption(user=password, owner=owner, R=revision, aes=aes, metadata=aes)
        pdf.save(path, encryption=encryption)
    return path


@pytest.mark.parametrize("revision", [2, 3, 4, 6])
@pytest.mark.parametrize("password", ["secret", "æøå"])
def test_passwords_open_every_revision(tmp_path: Path, revision: int, password: str) -> None:
    path = encrypted(tmp_path / "x.pdf", password, revision)
    assert len(opened(path, "wrong", password).pages()) == 1
    assert len(opened(path, "owner").pages()) == 1
    with pytest.raises(EncryptedDocumentError, match="needs a password"):
        opened(path)
    with pytest.raises(EncryptedDocumentError, match="none of the given passwords") as caught:
        opened(path, "wrong")
    assert "wrong" not in str(caught.value)


def test_an_owner_password_alone_does_not_matter(tmp_path: Path) -> None:
    assert len(opened(encrypted(tmp_path / "x.pdf", "", 6)).pages()) == 1


def test_a_file_that_is_no_pdf_inside_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(b"%PDF-1.4\nnothing follows")
    with pytest.raises(CorruptDocumentError, match=r"x\.pdf is damaged"):
        opened(path)


def test_filled_form_fields_are_drawn(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "x.pdf"), pagesize=PAGE)
    canvas.acroForm.checkbox(x=100, y=200, size=60, checked=True, fillColor=None, borderWidth=0)
    canvas.acroForm.textfield(x=40, y=300, width=200, height=40, value="FILLED", borderWidth=0, fontSize=24)
    canvas.showPage()
    canvas.save()
    image = render_pdf(tmp_path / "x.pdf", long_side=400).image.convert("L")
    assert image.crop((100, 140, 160, 200)).getextrema()[0] < 100
    assert image.crop((40, 60, 240, 100)).getextrema()[0] < 100


def test_javascript_does_not_run_and_does_not_hang(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "x.pdf")
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        script = pikepdf.Dictionary(S=pikepdf.Name.JavaScript, JS="while (true) { app.alert('x'); }")
        pdf.Root.OpenAction = script
        pdf.Root.AcroForm = pikepdf.Dictionary(Fields=[], CO=[])
        pdf.pages[0].AA = pikepdf.Dictionary(O=script)
        pdf.save(path)
    assert render_pdf(path).text_layer.spans[0].text == "Hello world"


def test_a_picture_too_large_for_the_memory_is_an_error_not_a_blank_page(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    canvas = Canvas(str(path), pagesize=PAGE)
    canvas.drawImage(ImageReader(Image.new("L", (5000, 5000), "white")), 0, 0, *PAGE)
    canvas.save()
    with pytest.raises(LimitExceededError, match="picture of 25 million pixels"):
        render_pdf(path, memory_limit_bytes=256 * 1024**2)
    assert render_pdf(path).image.getextrema() == (255, 255)


@pytest.mark.parametrize(
    ("box", "long_side", "pixels"),
    [
        ((595, 842), 1540, (1089, 1540)),
        ((1, 1), 7, (7, 7)),
        ((1000, 1), 100, (100, 1)),
        ((612, 792), 1540, (1190, 1540)),
    ],
)
def test_fit(box: tuple[float, float], long_side: int, pixels: tuple[int, int]) -> None:
    assert fit(*box, long_side) == pixels


def test_bytes_of_the_file_may_be_preceded_by_junk(tmp_path: Path) -> None:
    path = text_pdf(tmp_path / "x.pdf")
    path.write_bytes(b"HTTP/1.1 200 OK\r\n\r\n" + path.read_bytes())
    assert io.BytesIO(path.read_bytes()).read(4) == b"HTTP"
    assert render_pdf(path).text_layer.spans[0].text == "Hello world"


def test_text_whose_font_is_nowhere_is_either_drawn_or_said_to_be_missing(tmp_path: Path) -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    canvas = Canvas(str(tmp_path / "x.pdf"), pagesize=(300, 400))
    canvas.setFont("HeiseiMin-W3", 20)
    canvas.drawString(50, 350, "日本語の横書き")
    canvas.drawString(50, 300, "   ")
    canvas.save()
    raster = render_pdf(tmp_path / "x.pdf")
    is_drawn = raster.image.getextrema() != (255, 255)  # depends on the fonts of this machine
    assert is_drawn == (raster.warnings == ())
    assert is_drawn or "HeiseiMin-W3" in raster.warnings[0]


def test_spaces_and_embedded_fonts_are_not_missing(tmp_path: Path) -> None:
    raster = render_pdf(content_pdf(tmp_path / "x.pdf", b"BT /F1 12 Tf 50 50 Td (   ) Tj () Tj 0 50 Td (Hello) Tj ET"))
    assert raster.warnings == ()
