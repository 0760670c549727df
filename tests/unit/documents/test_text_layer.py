from __future__ import annotations

import unicodedata
from pathlib import Path

import pikepdf
import pytest
import reportlab
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from document_builders import PAGE, PROSE, content_pdf, render_pdf, scan_pdf, text_pdf, to_unicode
from pagemill.documents.text_layer import normalise
from pagemill.domain import TextLayer, TextVerdict

SCALE = 1540 / 400


def layer_of(path: Path, index: int = 0) -> TextLayer:
    layer = render_pdf(path, index).text_layer
    assert layer is not None
    return layer


def texts(path: Path) -> list[str]:
    return [span.text for span in layer_of(path).spans]


def shown(tmp_path: Path, content: str, **page: object) -> TextLayer:
    return layer_of(content_pdf(tmp_path / "x.pdf", content.encode("latin-1"), **page))


def test_a_line_is_one_span_where_its_ink_is(tmp_path: Path) -> None:
    raster = render_pdf(text_pdf(tmp_path / "x.pdf", "Hamburgefonstiv"))
    (span,) = raster.text_layer.spans
    assert (span.text, span.font, span.vertical, span.sane) == ("Hamburgefonstiv", "Helvetica", False, True)
    assert span.font_size == pytest.approx(14 * SCALE, rel=0.01)
    ink = raster.image.point(lambda value: 255 - value).getbbox()
    assert span.box.left == pytest.approx(ink[0], abs=6)
    assert span.box.right == pytest.approx(ink[2], abs=6)
    assert span.box.top <= ink[1] + 3
    assert span.box.bottom >= ink[3] - 3
    assert span.box.height < 1.6 * span.font_size


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_boxes_follow_rotation_and_crop_box(tmp_path: Path, turn: int) -> None:
    path = content_pdf(
        tmp_path / "x.pdf", b"BT /F1 20 Tf 120 250 Td (Rotation) Tj ET", CropBox=[50, 100, 290, 390], Rotate=turn
    )
    raster = render_pdf(path)
    (span,) = raster.text_layer.spans
    ink = raster.image.point(lambda value: 255 - value).getbbox()
    assert span.box.left - 8 <= ink[0] <= span.box.left + 30
    assert span.box.top - 8 <= ink[1] <= span.box.top + 30
    assert span.box.right - 30 <= ink[2] <= span.box.right + 8
    assert span.box.bottom - 30 <= ink[3] <= span.box.bottom + 8
    assert span.vertical == (turn in (90, 270))
    assert span.text == "Rotation"


def test_cells_of_a_table_stay_apart_and_words_together(tmp_path: Path) -> None:
    layer = shown(tmp_path, "BT /F1 10 Tf 20 300 Td (two words) Tj 90 0 Td (12,50) Tj 60 0 Td (7) Tj ET")
    assert [span.text for span in layer.spans] == ["two words", "12,50", "7"]


def test_words_placed_one_by_one_are_joined_with_spaces(tmp_path: Path) -> None:
    layer = shown(tmp_path, "BT /F1 10 Tf 20 300 Td (These) Tj 32 0 Td (are) Tj 18.5 0 Td (words) Tj ET")
    assert [span.text for span in layer.spans] == ["These are words"]


def test_letters_placed_one_by_one_are_joined_without_spaces(tmp_path: Path) -> None:
    moves = " ".join(f"({letter}) Tj {stringWidth(letter, 'Helvetica', 10) + 0.5} 0 Td" for letter in "kerned")
    assert [span.text for span in shown(tmp_path, f"BT /F1 10 Tf 20 300 Td {moves} ET").spans] == ["kerned"]


def test_justified_spaces_do_not_split_a_line(tmp_path: Path) -> None:
    layer = shown(tmp_path, "BT /F1 10 Tf 6 Tw 20 300 Td (stretched over the line) Tj ET")
    assert [span.text for span in layer.spans] == ["stretched over the line"]


def test_fonts_and_sizes_end_a_span(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "x.pdf"), pagesize=PAGE)
    text = canvas.beginText(40, 300)
    for font, size, word in (
        ("Helvetica", 12, "plain "),
        ("Helvetica-Bold", 12, "bold "),
        ("Times-Italic", 12, "slanted "),
        ("Times-Italic", 18, "large"),
    ):
        text.setFont(font, size)
        text.textOut(word)
    canvas.drawText(text)
    canvas.save()
    spans = layer_of(tmp_path / "x.pdf").spans
    assert [(span.text, span.bold, span.italic) for span in spans] == [
        ("plain", False, False),
        ("bold", True, False),
        ("slanted", False, True),
        ("large", False, True),
    ]


def test_stroked_text_looks_bold(tmp_path: Path) -> None:
    assert shown(tmp_path, "BT /F1 12 Tf 2 Tr 20 300 Td (thick) Tj ET").spans[0].bold


@pytest.mark.parametrize(("dx", "dy"), [(0.3, 0), (0, 0.4), (1.2, 1.0)])
def test_text_printed_twice_counts_once(tmp_path: Path, dx: float, dy: float) -> None:
    layer = shown(tmp_path, f"BT /F1 14 Tf 40 300 Td (Shadow) Tj {dx} {dy} Td (Shadow) Tj ET")
    assert [span.text for span in layer.spans] == ["Shadow"]


def test_letters_printed_twice_each_count_once(tmp_path: Path) -> None:
    moves = " ".join(
        f"({letter}) Tj 0.3 0 Td ({letter}) Tj {stringWidth(letter, 'Helvetica', 14)} 0 Td" for letter in "bold"
    )
    assert [span.text for span in shown(tmp_path, f"BT /F1 14 Tf 40 300 Td {moves} ET").spans] == ["bold"]


@pytest.mark.parametrize(("target", "text"), [("ff", "office"), ("ffi", "offiice"), ("tt", "ottice"), ("e", "oeice")])
def test_letters_of_a_ligature_are_all_kept(tmp_path: Path, target: str, text: str) -> None:
    path = content_pdf(tmp_path / "x.pdf", b"BT /F1 14 Tf 40 300 Td (o#ice) Tj ET")
    mapping = {code: chr(code) for code in range(97, 123)} | {ord("#"): target}
    assert texts(to_unicode(path, mapping)) == [text]


def test_the_same_text_elsewhere_is_kept(tmp_path: Path) -> None:
    layer = shown(tmp_path, "BT /F1 14 Tf 40 300 Td (again) Tj 0 -18 Td (again) Tj 100 0 Td (again) Tj ET")
    assert [span.text for span in layer.spans] == ["again"] * 3


def test_double_letters_are_kept(tmp_path: Path) -> None:
    assert [span.text for span in shown(tmp_path, "BT /F1 14 Tf 40 300 Td (balloon llama 1000) Tj ET").spans] == [
        "balloon llama 1000"
    ]


def test_text_outside_the_page_is_not_on_it(tmp_path: Path) -> None:
    layer = shown(tmp_path, "BT /F1 14 Tf 40 300 Td (in) Tj 0 500 Td (out) Tj ET", CropBox=[0, 0, 300, 390])
    assert [span.text for span in layer.spans] == ["in"]


def test_turned_text_is_marked_vertical(tmp_path: Path) -> None:
    layer = shown(tmp_path, "BT /F1 14 Tf 0 1 -1 0 100 100 Tm (upwards we go) Tj ET")
    (span,) = layer.spans
    assert (span.text, span.vertical) == ("upwards we go", True)
    assert span.box.height > 3 * span.box.width


def test_upside_down_text_reads_forward(tmp_path: Path) -> None:
    layer = shown(tmp_path, "BT /F1 14 Tf -1 0 0 -1 200 200 Tm (upside down) Tj ET")
    assert [span.text for span in layer.spans] == ["upside down"]


def vertical_pdf(path: Path, text: str) -> Path:
    """A page with text from top to bottom, in an embedded font: others depend on what the machine has."""
    file = Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"
    glyphs = TTFont("Vera", str(file)).face.charToGlyph
    codes = {char: f"{glyphs[ord(char)]:04x}" for char in text}
    pdf = pikepdf.new()
    pdf.add_blank_page(page_size=PAGE)
    font_file = pdf.make_stream(file.read_bytes())
    descriptor = pdf.make_indirect(
        pikepdf.Dictionary(
            Type=pikepdf.Name.FontDescriptor,
            FontName=pikepdf.Name.Vera,
            Flags=4,
            FontBBox=[-200, -250, 1300, 950],
            ItalicAngle=0,
            Ascent=900,
            Descent=-250,
            CapHeight=700,
            StemV=80,
            FontFile2=font_file,
        )
    )
    descendant = pikepdf.Dictionary(
        Type=pikepdf.Name.Font,
        Subtype=pikepdf.Name.CIDFontType2,
        BaseFont=pikepdf.Name.Vera,
        CIDSystemInfo=pikepdf.Dictionary(Registry=b"Adobe", Ordering=b"Identity", Supplement=0),
        FontDescriptor=descriptor,
        DW=1000,
        CIDToGIDMap=pikepdf.Name.Identity,
    )
    pairs = "\n".join(f"<{code}> <{ord(char):04x}>" for char, code in codes.items())
    mapping = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{len(codes)} beginbfchar\n{pairs}\nendbfchar endcmap end"
    )
    font = pikepdf.Dictionary(
        Type=pikepdf.Name.Font,
        Subtype=pikepdf.Name.Type0,
        BaseFont=pikepdf.Name.Vera,
        Encoding=pikepdf.Name("/Identity-V"),
        DescendantFonts=[descendant],
        ToUnicode=pdf.make_stream(mapping.encode()),
    )
    page = pdf.pages[0]
    page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=font))
    shown = "".join(codes[char] for char in text)
    page.Contents = pdf.make_stream(f"BT /F1 20 Tf 1 0 0 1 200 350 Tm <{shown}> Tj ET".encode())
    pdf.save(path)
    return path


def test_vertical_writing_is_one_span(tmp_path: Path) -> None:
    (span,) = layer_of(vertical_pdf(tmp_path / "x.pdf", "downward")).spans
    assert (span.text, span.vertical) == ("downward", True)


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ("e\u0301te\u0301", "été"),
        ("\ufb01n o\ufb03ce", "fin office"),
        ("soft\u00adware", "soft-ware"),
        ("line\x02", "line-"),
        ("a\u200bb\ufeffc\u200e", "abc"),
        ("a\u00a0b\u2003 c", "a b c"),
        ("a\x00b\x1fc\x9d", "abc"),
        ("\u2f08", "人"),
        ("\ufef5", "\u0644\u0622"),
        ("\uf0b7", "•"),
        ("x² ½ ㎏", "x² ½ ㎏"),
        ("\ud835\udc65", "\U0001d465"),
        ("\ud835", "\ufffd"),
        ("三\u3000四", "三\u3000四"),
    ],
)
def test_normalise(units: str, expected: str) -> None:
    assert normalise(map(ord, units)) == expected
    assert unicodedata.is_normalized("NFC", normalise(map(ord, units)))


def test_born_digital_prose_is_sane(tmp_path: Path) -> None:
    layer = layer_of(text_pdf(tmp_path / "x.pdf", "\n".join(PROSE), size=(700, 400)))
    assert layer.verdict is TextVerdict.SANE
    assert [span.text for span in layer.spans] == list(PROSE)


def test_a_wrong_to_unicode_map_is_found(tmp_path: Path) -> None:
    path = to_unicode(
        text_pdf(tmp_path / "x.pdf", "\n".join(PROSE), size=(700, 400)),
        {code: chr((code - 97 + 5) % 26 + 97) for code in range(97, 123)},
    )
    layer = layer_of(path)
    assert layer.verdict is TextVerdict.GARBLED
    assert "as in no language" in layer.reasons[0]
    assert not any(span.sane for span in layer.spans)


def test_a_map_to_private_use_is_found(tmp_path: Path) -> None:
    path = to_unicode(text_pdf(tmp_path / "x.pdf", PROSE[0]), {code: chr(0xE000 + code) for code in range(33, 127)})
    layer = layer_of(path)
    assert layer.verdict is TextVerdict.GARBLED
    assert "no usable mapping" in layer.reasons[0]


def test_an_invisible_layer_over_a_scan_is_hidden(tmp_path: Path) -> None:
    layer = layer_of(scan_pdf(tmp_path / "x.pdf", Image.effect_noise((300, 400), 60)))
    assert layer.verdict is TextVerdict.HIDDEN
    assert [span.text for span in layer.spans] == list(PROSE)
    (image,) = layer.images
    assert (image.width, image.height) == pytest.approx((1155, 1540), abs=2)


def test_visible_text_under_a_scan_is_hidden(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "x.pdf"), pagesize=PAGE)
    canvas.drawString(40, 300, "An earlier recognition of the page, drawn before its picture.")
    canvas.drawImage(ImageReader(Image.effect_noise((300, 400), 60)), 0, 0, *PAGE)
    canvas.save()
    assert layer_of(tmp_path / "x.pdf").verdict is TextVerdict.HIDDEN


def test_visible_text_on_a_background_picture_is_sane(tmp_path: Path) -> None:
    path = scan_pdf(tmp_path / "x.pdf", Image.new("RGB", (30, 40), "lightyellow"), mode=0)
    assert layer_of(path).verdict is TextVerdict.SANE


def test_a_scan_without_text_is_absent(tmp_path: Path) -> None:
    layer = layer_of(scan_pdf(tmp_path / "x.pdf", Image.effect_noise((300, 400), 60), draw_text=False))
    assert (layer.verdict, layer.spans) == (TextVerdict.ABSENT, ())
    assert len(layer.images) == 1


def test_strips_of_a_picture_are_joined_and_pictures_kept_apart(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "x.pdf"), pagesize=PAGE)
    strip = ImageReader(Image.effect_noise((200, 20), 60))
    for number in range(5):
        canvas.drawImage(strip, 50, 300 - 20 * number, 200, 20)
    canvas.drawImage(strip, 50, 100, 200, 60)
    canvas.save()
    boxes = sorted((box.top, box.height) for box in layer_of(tmp_path / "x.pdf").images)
    assert boxes == [
        (pytest.approx(80 * SCALE, abs=2), pytest.approx(100 * SCALE, abs=2)),
        (pytest.approx(240 * SCALE, abs=2), pytest.approx(60 * SCALE, abs=2)),
    ]


def test_pictures_inside_form_objects_are_found(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "x.pdf"), pagesize=PAGE)
    canvas.beginForm("logo")
    canvas.drawImage(ImageReader(Image.effect_noise((50, 50), 60)), 0, 0, 50, 50)
    canvas.endForm()
    canvas.saveState()
    canvas.translate(100, 200)
    canvas.scale(2, 2)
    canvas.doForm("logo")
    canvas.restoreState()
    canvas.save()
    (box,) = layer_of(tmp_path / "x.pdf").images
    assert (box.left, box.top, box.right, box.bottom) == pytest.approx((385, 385, 770, 770), abs=3)
