"""Pages that test structure: columns, tables, headings, lists, formulas, page furniture."""

from __future__ import annotations

from generated.page import Cell, PageBuilder

SMALL_COLUMNS = "body { font-size: 9.5pt; text-align: justify } h2 { font-size: 12pt }"


def two_columns() -> PageBuilder:
    left = (
        PageBuilder("")
        .heading(2, "Introduction")
        .paragraph(
            "River restoration has become a common response to decades of channel modification. "
            "Straightened reaches convey water quickly but offer little habitat, and the loss of "
            "gravel bars removes spawning sites for trout and grayling. This study examines four "
            "reaches in the upper catchment between 2019 and 2024, and compares them with two control"
            " reaches that were left unmodified."
        )
        .paragraph(
            "Previous work has focused on short periods after construction. We extend the record to "
            "five years, which allows us to separate the immediate disturbance from the longer "
            "recovery. Discharge was measured continuously at two gauging stations, and invertebrates"
            " were sampled in spring and autumn with a standard kick net."
        )
        .heading(2, "Methods")
        .paragraph(
            "Each reach was divided into ten sections of equal length. Within a section we recorded "
            "depth, velocity and substrate at twelve points along three transects. Electrofishing "
            "followed the national protocol with three consecutive passes, and population size was "
            "estimated with the removal method."
        )
    )
    right = (
        PageBuilder("")
        .paragraph(
            "Water samples were filtered in the field, cooled, and analysed within twenty-four hours."
            " Dissolved oxygen and temperature were logged every fifteen minutes by two sondes that "
            "were cleaned weekly and calibrated each month against a laboratory standard."
        )
        .heading(2, "Results")
        .paragraph(
            "Mean depth variation increased by 62 percent in the restored reaches, whereas the "
            "controls changed by less than 5 percent. The number of taxa rose from 31 to 44 after "
            "three years. Trout density doubled at two sites, remained stable at one, and declined "
            "slightly at the fourth, where a barrier downstream prevented migration until 2023."
        )
        .heading(2, "Discussion")
        .paragraph(
            "The data suggest that physical diversity recovers within two seasons, but that the "
            "biological response takes longer and depends on connectivity. Managers should therefore "
            "remove barriers before, not after, they invest in habitat structures. A longer record "
            "and additional reaches would improve confidence in these conclusions."
        )
    )
    return (
        PageBuilder("twocol", css=SMALL_COLUMNS)
        .heading(1, "Five Years of Recovery in Restored River Reaches", "style='text-align: center'")
        .paragraph(
            "Abstract. We report five years of measurements from four restored reaches and show that habitat "
            "recovers faster than the animals that use it.",
            "class='sans' style='margin: 0 15mm'",
        )
        .columns([left, right])
        .reading_order(
            [
                "Introduction",
                "Methods",
                "Electrofishing followed",
                "Water samples were filtered",
                "Results",
                "Discussion",
            ]
        )
    )


def tables() -> PageBuilder:
    return (
        PageBuilder("table")
        .heading(1, "Monitoring Tables")
        .paragraph("The first table lists fish counts and cost per site. All counts are means of three passes.")
        .table(
            [
                ["Site", "Year", "Trout per ha", "Depth (m)", "Cost (EUR)"],
                ["Mill Bridge", "2021", "412", "0.84", "128,500"],
                ["Mill Bridge", "2024", "866", "1.12", "14,300"],
                ["Oak Weir", "2021", "275", "0.61", "96,750"],
                ["Oak Weir", "2024", "301", "0.97", "11,020"],
                ["Lower Ford", "2024", "198", "0.55", "8,940"],
            ]
        )
        .paragraph("The second table compares water quality before and after the work.")
        .table(
            [
                ["Parameter", "Unit", "Before", "After"],
                ["Dissolved oxygen", "mg/l", "6.1", "8.4"],
                ["Nitrate", "mg/l", "24.8", "17.3"],
                ["Turbidity", "NTU", "12.5", "5.9"],
                ["Water temperature", "°C", "18.2", "16.7"],
            ],
            "open",
            "style='width: 85%'",
        )
        .paragraph("End of the monitoring section.")
    )


def merged_cells() -> PageBuilder:
    return (
        PageBuilder("merged", css=".ruled th, .ruled td { text-align: center }")
        .heading(1, "Sales by Region")
        .table(
            [
                [Cell("Region", rows=2), Cell("2023", columns=2), Cell("2024", columns=2)],
                ["Q1", "Q2", "Q1", "Q2"],
                ["North", "12", "15", "18", "21"],
                ["South", "7", "9", "11", "13"],
            ]
        )
        .paragraph("Figures are in thousands of units.")
    )


def headings_and_lists() -> PageBuilder:
    return (
        PageBuilder("headlist")
        .heading(1, "Field Manual for Volunteers")
        .paragraph(
            "This manual explains how to take part in the monthly survey. Please read it before your "
            "first visit and keep a copy in the equipment box."
        )
        .heading(2, "1. Before You Go")
        .paragraph("Check the weather and the river level. Never work alone near deep water.")
        .items(
            [
                "Waders and a life jacket",
                "A charged mobile phone",
                "The survey form and two pencils",
                "A small first-aid kit",
            ]
        )
        .heading(2, "2. At the Site")
        .heading(3, "2.1 Safety Briefing")
        .paragraph("The team leader gives a short briefing and assigns the roles for the day.")
        .heading(3, "2.2 Sampling Steps")
        .items(
            [
                "Mark the start of the section with a flag.",
                "Measure depth and width at five points.",
                "Take one kick sample of three minutes.",
                "Rinse the net and label the jar.",
            ],
            ordered=True,
        )
        .heading(2, "3. Afterwards")
        .paragraph("Return the equipment, wash your hands, and send the form to the office within two days.")
        .furniture("River Watch Handbook", "Page 7 of 32")
    )


def formulas() -> PageBuilder:
    mean = (
        "<table style='margin: auto; border-collapse: collapse'><tr><td rowspan='2'>x&#772; = &nbsp;</td>"
        "<td style='border-bottom: 1px solid #000; text-align: center'>"
        "x<sub>1</sub> + x<sub>2</sub> + &hellip; + x<sub>n</sub></td></tr>"
        "<tr><td style='text-align: center'>n</td></tr></table>"
    )
    return (
        PageBuilder("formula")
        .heading(1, "Energy Balance")
        .paragraph("The energy of a body at rest is given by the well-known relation")
        .formula("E = mc<sup>2</sup>", ["E = mc2"])
        .paragraph("and the mean of n samples is")
        .formula(mean, ["x = x1 + x2 + … + xn", "n"])
        .paragraph("These two formulas are used in the next chapter.")
    )


def chinese_table() -> PageBuilder:
    return (
        PageBuilder("zhtable", "zh")
        .heading(1, "水质监测表")
        .paragraph("下表比较了治理前后的水质数据。")
        .table(
            [
                ["项目", "单位", "治理前", "治理后"],
                ["溶解氧", "毫克/升", "6.1", "8.4"],
                ["硝酸盐", "毫克/升", "24.8", "17.3"],
                ["浊度", "NTU", "12.5", "5.9"],
            ]
        )
        .paragraph("数据来源：市水务局。")
    )


def borderless_table() -> PageBuilder:
    return (
        PageBuilder("borderless", css=".bare { width: 90% } .bare td, .bare th { padding: 1.2mm 4mm }")
        .heading(1, "Ferry Timetable")
        .paragraph("All crossings run daily from May to September unless the wind is above force seven.")
        .table(
            [
                ["Ship", "From", "Departs", "Arrives", "Fare"],
                ["Heron", "North Pier", "07:15", "08:40", "12.50"],
                ["Heron", "Old Harbour", "09:05", "10:30", "12.50"],
                ["Kittiwake", "North Pier", "10:20", "11:35", "14.00"],
                ["Kittiwake", "Salt Island", "12:10", "13:25", "14.00"],
                ["Puffin", "Old Harbour", "15:45", "17:30", "9.80"],
                ["Puffin", "Salt Island", "18:00", "19:45", "9.80"],
            ],
            "bare",
        )
        .paragraph("Dogs travel free of charge. Bicycles cost three euros.")
    )


def multiline_table() -> PageBuilder:
    return (
        PageBuilder("multiline")
        .heading(1, "Duties of the Crew")
        .paragraph("Every member of the crew signs this sheet before the first voyage.")
        .table(
            [
                ["Post", "Duties in port", "Duties at sea"],
                [
                    "First mate",
                    ("Checks the cargo list, signs for fuel and water, and reports missing hands to the master."),
                    "Stands the morning watch and keeps the log of position, speed and weather.",
                ],
                [
                    "Engineer",
                    "Cleans the filters and orders spare parts from the chandler.",
                    "Watches the oil pressure and tells the bridge at once when it falls below three bar.",
                ],
                [
                    "Cook",
                    "Buys provisions for ten days and stows them dry.",
                    "Serves hot meals at noon and at six, also in bad weather.",
                ],
            ]
        )
        .paragraph("The master may change these duties in an emergency.")
    )


def paper() -> PageBuilder:
    left = (
        PageBuilder("")
        .heading(2, "1 Introduction")
        .paragraph(
            "A bell that is cast too thin rings bright and dies early. Founders have long known the "
            "remedy, yet the relation between wall thickness and decay time has rarely been measured "
            "on bells that are still in use. We recorded 46 church bells in one valley, all cast "
            "between 1650 and 1910, and compared their decay with the thickness at the sound bow."
        )
        .heading(2, "2 Model")
        .paragraph("For a damped oscillator the amplitude after the time t is")
        .formula("A(t) = A<sub>0</sub> e<sup>−t/τ</sup>", ["A(t) = A0 e−t/τ"])
        .paragraph(
            "where τ is the decay time. We expect τ to grow with the square of the thickness, because the "
            "stored energy grows faster than the loss to the air."
        )
    )
    right = (
        PageBuilder("")
        .heading(2, "3 Results")
        .paragraph(
            "Table 1 gives the medians of three classes. The exponent fitted to all bells is 1.9, "
            "close to the expected value of two."
        )
        .table(
            [
                ["Class", "Bells", "Thickness (mm)", "Decay (s)"],
                ["thin", "14", "41", "9.6"],
                ["medium", "21", "58", "18.9"],
                ["thick", "11", "77", "33.2"],
            ],
            "open",
            "style='font-size: 8.5pt'",
        )
        .heading(2, "4 Conclusion")
        .paragraph(
            "Thickness explains most of the difference between the bells of the valley. The rest is "
            "due to the clapper, the frame and, in two cases, to cracks that nobody had heard. Owners"
            " who plan to recast a bell should therefore ask for its thickness first."
        )
    )
    return (
        PageBuilder("paper", css=SMALL_COLUMNS)
        .heading(1, "Why Old Bells Ring Longer", "style='text-align: center'")
        .paragraph("Hanna Birkenfeld and Joaquim Prats", "style='text-align: center'")
        .columns([left, right])
        .reading_order(["1 Introduction", "2 Model", "3 Results", "4 Conclusion"])
    )
