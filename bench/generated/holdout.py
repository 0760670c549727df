"""Pages that exist as scans only: a newspaper, Chinese columns, a German letter, a Japanese list."""

from __future__ import annotations

from generated.page import PageBuilder


def newspaper() -> PageBuilder:
    first = (
        PageBuilder("")
        .heading(2, "Bridge to close for six weeks")
        .paragraph(
            "The swing bridge at Cooper's Lock will be closed to all traffic from Monday. Divers "
            "found that two of the four bearings have moved by almost three centimetres since the "
            "spring floods."
        )
        .paragraph(
            "A ferry for pedestrians will run every ten minutes between six in the morning and eleven"
            " at night. Drivers are asked to use the ring road, where the speed limit is lowered to "
            "fifty."
        )
        .paragraph(
            "The port authority expects the repair to cost 740,000 crowns. It will be paid from the "
            "reserve that was set aside after the storm of 2018."
        )
    )
    second = (
        PageBuilder("")
        .heading(2, "Choir wins at last")
        .paragraph(
            "After eleven second places the Harbour Choir has won the national contest. The jury praised the "
            "clear voices of the altos and the courage to sing without a conductor."
        )
        .paragraph(
            '"We stopped counting years ago," said the oldest member, who is 84 and has sung in all twelve '
            "finals. The choir will give a free concert on Saturday at the fish market."
        )
        .heading(2, "Weather")
        .paragraph(
            "Fog until noon, then sunny spells with a light wind from the east. Highs near 14 "
            "degrees. Rain is not expected before Thursday."
        )
    )
    third = (
        PageBuilder("")
        .heading(2, "Library lends out tools")
        .paragraph(
            "From next month readers can borrow not only books but also drills, ladders and a cement "
            "mixer. A deposit is not required, but late returns cost two crowns a day."
        )
        .paragraph(
            "The idea came from a reader who had bought a saw for a single shelf. The first 35 tools "
            "were given by residents; the cement mixer was found in the cellar of the library itself,"
            " and nobody knows how it got there."
        )
    )
    return (
        PageBuilder(
            "news3",
            css="body { font-size: 9.5pt; text-align: justify } h2 { font-size: 12.5pt; text-align: left }"
            " .nameplate { font-size: 26pt; text-align: center; margin: 0 }",
        )
        .paragraph("The Lock Gazette", "class='nameplate'")
        .columns([first, second, third])
        .reading_order(
            [
                "Bridge to close for six weeks",
                "Choir wins at last",
                "Fog until noon",
                "Library lends out tools",
                "nobody knows",
            ]
        )
    )


def chinese_columns() -> PageBuilder:
    left = (
        PageBuilder("", "zh")
        .heading(2, "一、引言")
        .paragraph(
            "山区学校的用水长期依赖泉水和雨水。近年来，随着住校学生增加，旱季缺水的情况日益明显。本文调查了三个县的二十七所学校，记录了它们在一年之中的用水量、水源和储水设施。"
        )
        .heading(2, "二、调查方法")
        .paragraph(
            "调查人员每月到校一次，读取水表，并测量蓄水池的水位。没有水表的学校，由值日教师每天记录取水的桶数。所有数据均由两人分别核对。"
        )
    )
    right = (
        PageBuilder("", "zh")
        .heading(2, "三、结果")
        .paragraph(
            "住校学生每人每天平均用水二十一升，走读学生为六升。旱季的三个月里，有九所学校的蓄水池曾经见底，其中四所不得不提前放假。安装屋顶集雨设施的学校，缺水天数减少了七成。"
        )
        .heading(2, "四、建议")
        .paragraph(
            "应优先为住校学生超过一百人的学校修建集雨设施，并在每年三月之前检修管道。新建蓄水池的容积，不宜小于每名学生一立方米。"
        )
    )
    return (
        PageBuilder("zh2col", "zh", css="body { font-size: 10.5pt; text-align: justify } h2 { font-size: 13pt }")
        .heading(1, "山区学校用水状况调查", "style='text-align: center'")
        .columns([left, right])
        .reading_order(["一、引言", "二、调查方法", "三、结果", "四、建议"])
    )


def german_letter() -> PageBuilder:
    return (
        PageBuilder("deletter", "de", css="h1 { font-size: 15pt; margin-top: 10mm }")
        .paragraph("Gärtnerei Blütenweiß, Am Mühlgraben 3, 99997 Öhringshausen")
        .paragraph("Herrn Jörg Großmüller, Lärchenstraße 18, 99996 Küßnach")
        .paragraph("Öhringshausen, den 3. März 2025", "style='text-align: right'")
        .heading(1, "Angebot für die Bepflanzung Ihres Vorgartens")
        .paragraph(
            "Sehr geehrter Herr Großmüller, vielen Dank für Ihre Anfrage. Wir können die Arbeiten in "
            "der zweiten Aprilwoche ausführen, sofern der Boden bis dahin frostfrei ist. Unser "
            "Angebot lautet wie folgt:"
        )
        .table(
            [
                ["Leistung", "Menge", "Preis", "Summe"],
                ["Boden lockern und düngen", "24 m²", "6,50 €", "156,00 €"],
                ["Säuleneibe, 80 cm", "5", "42,00 €", "210,00 €"],
                ["Frühblüher, gemischt", "120", "0,85 €", "102,00 €"],
                ["Rindenmulch ausbringen", "3 m³", "58,00 €", "174,00 €"],
            ]
        )
        .paragraph(
            "Die Preise verstehen sich zuzüglich der gesetzlichen Umsatzsteuer. An dieses Angebot "
            "halten wir uns bis zum 31. März gebunden. Für Rückfragen erreichen Sie uns täglich außer"
            " montags."
        )
        .paragraph("Mit freundlichen Grüßen")
        .paragraph("Käthe Blütenweiß")
    )


def japanese_list() -> PageBuilder:
    return (
        PageBuilder("jalist", "ja", css="h2 { font-size: 14pt }")
        .heading(1, "山小屋利用の手引き")
        .paragraph(
            "この手引きは、初めて山小屋に泊まる方のためのものです。出発の前に必ずお読みになり、同行の方にもお伝えください。"
        )
        .heading(2, "持ち物")
        .items(
            [
                "雨具と着替え、替えの靴下",
                "懐中電灯と予備の電池",
                "水筒（一リットル以上）",
                "健康保険証の写しと常備薬",
            ]
        )
        .heading(2, "到着したら")
        .paragraph(
            "受付で名前と翌日の行き先を書いてください。午後四時までに着けないときは、早めに電話で知らせてください。消灯は午後八時です。"
            "夜中に出発する方は、荷物を廊下に出しておくと、ほかの客を起こさずにすみます。"
        )
    )


VERTICAL_JAPANESE = [
    "灯台守の日記",
    "朝から霧が深く、沖の船は",
    "汽笛を鳴らしながら通った。",
    "昼過ぎに風が変わり、島の",
    "影がようやく見えてきた。",
    "郵便船は三日遅れて着き、",
    "新聞と林檎を一箱置いて",
    "いった。夜はよく晴れて、",
    "星が海に映っていた。",
]
"""A title and the lines of a page set from top to bottom, columns from right to left."""
