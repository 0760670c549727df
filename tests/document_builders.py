"""Small documents, made on the spot."""

from __future__ import annotations

import io
from pathlib import Path

import pikepdf
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from pagemill.documents.options import RenderOptions
from pagemill.documents.pdf import PdfReader
from pagemill.documents.reader import Raster

PAGE = (300, 400)
PROSE = (
    "The council of the town has approved the new plan for the harbour after a debate of three hours.",
    "Most of the members were in favour, and only two of them voted against the proposal in the end.",
    "Work on the eastern pier will begin next spring, when the weather allows the divers to inspect it.",
)


def text_pdf(path: Path, *pages: str, size: tuple[float, float] = PAGE) -> Path:
    """A PDF with one or more lines of Helvetica on each page."""
    canvas = Canvas(str(path), pagesize=size, invariant=1)
    for text in pages or ("Hello world",):
        canvas.setFont("Helvetica", 14)
        for number, line in enumerate(text.split("\n")):
            canvas.drawString(40, size[1] - 60 - 20 * number, line)
        canvas.showPage()
    canvas.save()
    return path


def content_pdf(path: Path, content: bytes, size: tuple[float, float] = PAGE, **page: object) -> Path:
    """A PDF of one page with this content stream; Helvetica is /F1."""
    pdf = pikepdf.new()
    pdf.add_blank_page(page_size=size)
    pdf.pages[0].Contents = pikepdf.Stream(pdf, content)
    pdf.pages[0].Resources = pikepdf.Dictionary(
        Font=pikepdf.Dictionary(
            F1=pikepdf.Dictionary(
                Type=pikepdf.Name.Font,
                Subtype=pikepdf.Name.Type1,
                BaseFont=pikepdf.Name.Helvetica,
                Encoding=pikepdf.Name.WinAnsiEncoding,
            )
        )
    )
    for key, value in page.items():
        pdf.pages[0][f"/{key}"] = value
    pdf.save(path)
    return path


def to_unicode(path: Path, mapping: dict[int, str]) -> Path:
    """Gives every font of a PDF a ToUnicode map that says `mapping[code]`."""
    lines = "\n".join(f"<{code:02x}> <{target.encode('utf-16-be').hex()}>" for code, target in mapping.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        "1 begincodespacerange <00> <ff> endcodespacerange\n"
        f"{len(mapping)} beginbfchar\n{lines}\nendbfchar endcmap end end"
    )
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        for page in pdf.pages:
            for font in page.Resources.Font.values():
                font.ToUnicode = pikepdf.Stream(pdf, cmap.encode())
        pdf.save(path)
    return path


def scan_pdf(path: Path, image: object, draw_text: bool = True, mode: int = 3) -> Path:
    """A page-wide picture with a text layer in a render mode over it."""
    canvas = Canvas(str(path), pagesize=PAGE, invariant=1)
    canvas.drawImage(ImageReader(image), 0, 0, *PAGE)
    if draw_text:
        text = canvas.beginText(40, 340)
        text.setTextRenderMode(mode)
        text.setFont("Helvetica", 10)
        for line in PROSE:
            text.textLine(line)
        canvas.drawText(text)
    canvas.save()
    return path


def image_bytes(image: object, kind: str, **options: object) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


def render_pdf(path: Path, index: int = 0, **options: object) -> Raster:
    """Renders one page in this process, text layer included."""
    reader = PdfReader(path, path.name, (), RenderOptions(**options))
    try:
        return reader.render(index, text_layer=True)
    finally:
        reader.close()
