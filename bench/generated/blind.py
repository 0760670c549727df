"""Pages for a blind test: written without a look at any output, and their errors not used to improve the engine."""

from __future__ import annotations

from generated.page import Cell, PageBuilder


def french_minutes() -> PageBuilder:
    return (
        PageBuilder("minutes", "fr", css="body { font-size: 10.5pt } h1 { font-size: 17pt } h2 { font-size: 12.5pt }")
        .heading(1, "Procès-verbal de l'assemblée des copropriétaires")
        .paragraph(
            "Séance du 12 juin 2024, salle des fêtes, de 18 h 30 à 21 h 10. Présents ou représentés : 41 sur 56."
        )
        .heading(2, "1. Approbation des comptes")
        .paragraph(
            "Le syndic présente les comptes de l'exercice écoulé. Les dépenses s'élèvent à 87 412,60 €, soit 3,4 % de "
            "moins que l'année précédente, grâce à un hiver doux. Les comptes sont approuvés à l'unanimité."
        )
        .table(
            [
                ["Poste", "Prévu", "Dépensé", "Écart"],
                ["Chauffage", "38 000 €", "33 125 €", "−4 875 €"],
                ["Ascenseur", "9 200 €", "11 040 €", "+1 840 €"],
                ["Ménage", "17 500 €", "17 500 €", "0 €"],
                ["Assurance", "6 300 €", "6 518 €", "+218 €"],
            ],
            "open",
        )
        .heading(2, "2. Travaux de toiture")
        .paragraph("L'assemblée retient l'entreprise la moins-disante, sous trois réserves :")
        .items(
            [
                "le chantier sera achevé avant la Toussaint ;",
                "l'échafaudage ne bouchera aucune fenêtre du rez-de-chaussée ;",
                "une pénalité de 150 € par jour de retard sera inscrite au contrat.",
            ]
        )
        .heading(2, "3. Questions diverses")
        .paragraph(
            "Mme Lefèvre demande que l'on répare la boîte aux lettres du n° 7, forcée en mai. M. Öztürk signale que la "
            "minuterie de l'escalier B s'éteint trop tôt. Le syndic s'engage à agir dans la quinzaine."
        )
    )


def spanish_recipe() -> PageBuilder:
    return (
        PageBuilder("recipe", "es", css="h1 { font-family: 'Liberation Serif'; font-style: italic; font-size: 22pt }")
        .heading(1, "Empanada de sardinas")
        .paragraph("Para ocho personas. Tiempo: dos horas, más una de reposo para la masa.")
        .heading(2, "Ingredientes")
        .items(
            [
                "500 g de harina de trigo",
                "12 sardinas medianas, limpias y sin espinas",
                "2 cebollas grandes y 1 pimiento rojo",
                "150 ml de aceite de oliva",
                "1 pizca de azafrán y otra de pimentón",
            ]
        )
        .heading(2, "Preparación")
        .items(
            [
                "Amase la harina con agua tibia y la mitad del aceite hasta que no se pegue a los dedos.",
                "Sofría la cebolla y el pimiento a fuego lento durante veinticinco minutos.",
                "Extienda la masa, reparta el sofrito y coloque las sardinas encima.",
                "Cierre los bordes, pinche la tapa con un tenedor y hornee a 190 °C unos cuarenta minutos.",
            ],
            ordered=True,
        )
        .heading(2, "Consejo de la abuela")
        .paragraph("¿Sobró masa? Fríala en tiras y espolvoréela con azúcar: los niños no dejarán ni una miga.")
    )


def newsletter() -> PageBuilder:
    left = (
        PageBuilder("")
        .heading(2, "The lift is back")
        .paragraph(
            "After nineteen days on foot, the third floor has its lift again. The fault turned out to be a coin, "
            "wedged between two contacts since the summer party. Facilities has framed it and hung it in the cabin."
        )
        .heading(2, "New faces")
        .paragraph(
            "Please welcome Dilara from procurement, Henrik from the test bench, and the two apprentices who have "
            "already found the good biscuits. A tour of the paint shop for all newcomers starts on Friday at ten."
        )
        .heading(2, "Lost and found")
        .items(["One blue glove, left", "A slide rule in its case", "Three umbrellas, all black"])
    )
    right = (
        PageBuilder("")
        .heading(2, "Canteen prices")
        .table(
            [
                ["Dish", "Old", "New"],
                ["Soup of the day", "2.10", "2.30"],
                ["Main course", "5.40", "5.60"],
                ["Coffee", "1.00", "0.90"],
            ],
            "ruled",
            "style='font-size: 9pt'",
        )
        .paragraph("Coffee became cheaper because nobody could explain why it had not.")
        .heading(2, "Save the date")
        .paragraph(
            "The open day is on 21 September. We need forty volunteers for parking, tours and the bouncy castle. Lists "
            "hang beside the time clocks until the end of the month; children of staff may help from the "
            "age of fourteen."
        )
    )
    return (
        PageBuilder("newsletter", css="body { font-size: 10pt } h2 { font-size: 12pt }")
        .heading(1, "What's On at Works Four", "style='text-align: center'")
        .columns([left, right])
        .furniture("Internal use only", "Works Four Newsletter, issue 118")
        .reading_order(["The lift is back", "New faces", "Lost and found", "Canteen prices", "Save the date"])
    )


def contract() -> PageBuilder:
    return (
        PageBuilder(
            "contract", css="body { font-size: 10pt } h1 { font-size: 15pt; text-align: center } h2 { font-size: 11pt }"
        )
        .heading(1, "Lease of an Allotment Garden")
        .paragraph("between the Gardeners' Union of Eastfield, the lessor, and Mr. Tobias Fenwick, the lessee.")
        .heading(2, "Article 1. The plot")
        .paragraph("1.1 The lessor leases plot 73, measuring 312 square metres, with the hut and the well on it.")
        .paragraph("1.2 The plot is handed over as it is; known defects are listed in annex A.")
        .heading(2, "Article 2. Rent and deposit")
        .paragraph("2.1 The rent is £96.00 a year, due on 1 March, and is adjusted every third year.")
        .paragraph("2.2 The deposit is £150.00 and bears no interest.")
        .heading(2, "Article 3. Use")
        .paragraph("3.1 At least one third of the plot shall be used for vegetables.")
        .paragraph("3.2 Fires, music after nine in the evening, and the keeping of peacocks are forbidden.")
        .heading(2, "Article 4. Term")
        .paragraph(
            "4.1 The lease begins on 1 April 2025 and runs for five years. Either party may end it at the end of a "
            "year with three months' notice in writing."
        )
        .furniture("Contract no. 2025/073", "Initials: ______    Page 1 of 2")
    )


def chinese_notice() -> PageBuilder:
    return (
        PageBuilder("notice", "zh", css="h1 { text-align: center } h2 { font-size: 13pt }")
        .heading(1, "关于老城区停水检修的通知")
        .paragraph("各居民住户：为更换老城区的供水管道，定于本月十八日至二十日分片停水检修，具体安排如下表。")
        .table(
            [
                [Cell("片区", rows=2), Cell("停水时间", columns=2), Cell("受影响户数", rows=2)],
                ["开始", "结束"],
                ["钟楼片区", "18日 8:00", "18日 20:00", "1,206"],
                ["河沿片区", "19日 8:00", "19日 18:00", "874"],
                ["南门片区", "20日 9:00", "20日 22:00", "1,590"],
            ]
        )
        .heading(2, "注意事项")
        .items(
            [
                "请提前储备生活用水，并关好水龙头。",
                "恢复供水后，初期水质可能略显浑浊，请放水数分钟后再使用。",
                "如遇紧急情况，请拨打服务热线12345。",
            ],
            ordered=True,
        )
        .paragraph("给您带来的不便，敬请谅解。")
    )


def portuguese_prices() -> PageBuilder:
    return (
        PageBuilder("prices", "pt", css=".bare td, .bare th { padding: 1mm 3mm }")
        .heading(1, "Oficina de bicicletas: tabela de preços")
        .paragraph("Preços em euros, com IVA incluído, válidos a partir de 2 de janeiro.")
        .table(
            [
                ["Serviço", "Duração", "Cidade", "Corrida", "Elétrica"],
                ["Revisão simples", "40 min", "25,00", "30,00", "35,00"],
                ["Revisão completa", "2 h", "60,00", "75,00", "90,00"],
                ["Afinação dos travões", "20 min", "12,50", "15,00", "15,00"],
                ["Troca de câmara de ar", "15 min", "8,00", "8,00", "11,50"],
                ["Lavagem", "30 min", "10,00", "12,00", "12,00"],
            ],
            "bare",
        )
        .paragraph("Às peças acresce o preço de catálogo. Não fazemos reparações sem orçamento prévio.")
    )


def danish_instructions() -> PageBuilder:
    return (
        PageBuilder("instructions", "da")
        .heading(1, "Sådan samler du reolen")
        .paragraph("Læs hele vejledningen, før du begynder. Du skal bruge en skruetrækker og en god ven.")
        .heading(2, "Trin for trin")
        .items(
            [
                "Læg de to sider på gulvet med hullerne opad.",
                "Skru de fire midterhylder fast, men spænd ikke skruerne endnu.",
                "Rejs reolen, og kontrollér med et vaterpas, at den står lige.",
                "Spænd alle skruer, og sæt bagpladen i rillen.",
            ],
            ordered=True,
        )
        .heading(2, "Bæreevne")
        .table(
            [
                ["Hylde", "Bredde", "Højeste vægt"],
                ["Øverste", "80 cm", "12 kg"],
                ["Midterste", "80 cm", "20 kg"],
                ["Nederste", "80 cm", "35 kg"],
            ]
        )
        .paragraph("Overskrides vægten, bortfalder garantien. Små børn må ikke kravle på hylderne.")
        .furniture("Reol BRÅDEN", "Side 3")
    )


def japanese_columns() -> PageBuilder:
    left = (
        PageBuilder("", "ja")
        .heading(2, "開館時間の変更")
        .paragraph(
            "来月から、町立博物館の開館時間が三十分早くなります。朝の涼しいうちに見学したいという声に応えたもので、閉館は"
            "これまでどおり午後五時です。"
        )
        .heading(2, "寄贈のお礼")
        .paragraph("先月、町内の方から大正時代の時計と写真四十二枚をいただきました。修理のあと、秋の展示で公開します。")
    )
    right = (
        PageBuilder("", "ja")
        .heading(2, "行事のご案内")
        .table(
            [
                ["日付", "行事", "定員"],
                ["6日", "土器づくり", "15名"],
                ["13日", "古文書を読む会", "20名"],
                ["27日", "星空観察", "30名"],
            ],
            "ruled",
            "style='font-size: 9.5pt'",
        )
        .paragraph("申し込みは受付または電話で承ります。定員になりしだい締め切ります。")
    )
    return (
        PageBuilder("museum", "ja", css="body { font-size: 10.5pt } h2 { font-size: 13pt }")
        .heading(1, "博物館だより", "style='text-align: center'")
        .columns([left, right])
        .reading_order(["開館時間の変更", "寄贈のお礼", "行事のご案内", "申し込みは"])
    )


BLIND_PAGES = (
    french_minutes,
    spanish_recipe,
    newsletter,
    contract,
    chinese_notice,
    portuguese_prices,
    danish_instructions,
    japanese_columns,
)
