# ruff: noqa: E501 - sentences
from __future__ import annotations

import random
import string

import pytest

from pagemill.documents.sanity import FontSample, fault_of, fault_of_language, judge
from pagemill.domain import TextVerdict

LANGUAGES = {
    "en": "The council of the town has approved the new plan for the harbour after a debate of three hours, and work "
    "on the eastern pier will begin next spring when the weather allows the divers to inspect it again.",
    "de": "Der Rat der Stadt hat nach einer Aussprache von drei Stunden den neuen Plan für den Hafen gebilligt, und die "
    "Arbeiten am östlichen Pier beginnen im nächsten Frühjahr, sobald das Wetter es den Tauchern erlaubt.",
    "fr": "Le conseil de la ville a approuvé le nouveau plan du port après un débat de trois heures, et les travaux de "
    "la jetée orientale commenceront au printemps prochain dès que le temps le permettra aux plongeurs.",
    "es": "El ayuntamiento aprobó el nuevo plan del puerto después de un debate de tres horas, y las obras del muelle "
    "oriental empezarán la próxima primavera cuando el tiempo permita a los buzos inspeccionarlo.",
    "it": "Il consiglio comunale ha approvato il nuovo piano del porto dopo un dibattito di tre ore, e i lavori sul "
    "molo orientale cominceranno la prossima primavera quando il tempo permetterà ai sommozzatori di ispezionarlo.",
    "nl": "De gemeenteraad heeft na een debat van drie uur het nieuwe plan voor de haven goedgekeurd, en het werk aan "
    "de oostelijke pier begint volgend voorjaar zodra het weer de duikers toelaat om hem te onderzoeken.",
    "pt": "A câmara municipal aprovou o novo plano do porto depois de um debate de três horas, e as obras no cais "
    "oriental começarão na próxima primavera, quando o tempo permitir aos mergulhadores a inspeção.",
    "sv": "Kommunfullmäktige godkände den nya planen för hamnen efter en debatt på tre timmar, och arbetet på den östra "
    "piren börjar nästa vår när vädret tillåter dykarna att undersöka den.",
    "da": "Byrådet godkendte den nye plan for havnen efter en debat på tre timer, og arbejdet på den østlige mole "
    "begynder til foråret, når vejret tillader dykkerne at undersøge den.",
    "pl": "Rada miasta zatwierdziła nowy plan portu po trzygodzinnej debacie, a prace przy wschodnim molo rozpoczną się "
    "wiosną przyszłego roku, kiedy pogoda pozwoli nurkom je zbadać.",
    "fi": "Kaupunginvaltuusto hyväksyi sataman uuden suunnitelman kolmen tunnin keskustelun jälkeen, ja itäisen "
    "laiturin työt alkavat ensi keväänä, kun sää sallii sukeltajien tarkastaa sen.",
    "cs": "Městská rada schválila nový plán přístavu po tříhodinové debatě a práce na východním molu začnou příští jaro, "
    "až počasí dovolí potápěčům prohlédnout ho.",
    "hu": "A városi tanács háromórás vita után jóváhagyta a kikötő új tervét, és a keleti móló munkálatai jövő tavasszal "
    "kezdődnek, amikor az időjárás megengedi a búvároknak a vizsgálatot.",
    "tr": "Belediye meclisi üç saatlik bir tartışmadan sonra limanın yeni planını onayladı ve doğu iskelesindeki "
    "çalışmalar önümüzdeki baharda başlayacak.",
    "vi": "Hội đồng thành phố đã phê duyệt kế hoạch mới cho bến cảng sau ba giờ tranh luận, và công việc ở cầu tàu phía "
    "đông sẽ bắt đầu vào mùa xuân tới.",
    "id": "Dewan kota menyetujui rencana baru pelabuhan setelah perdebatan selama tiga jam, dan pekerjaan di dermaga "
    "timur akan dimulai pada musim semi mendatang.",
    "zh": "市议会经过三个小时的辩论批准了港口的新计划,东部码头的工程将在明年春天开始,届时天气允许潜水员进行检查。委员会的大多数成员"
    "都赞成这个计划,最后只有两个人投了反对票,他们认为费用太高而且时间不够。",
    "zh-Hant": "市議會經過三個小時的辯論批准了港口的新計劃,東部碼頭的工程將在明年春天開始,屆時天氣允許潛水員進行檢查。委員會的"
    "大多數成員都贊成這個計劃,最後只有兩個人投了反對票,他們認為費用太高而且時間不夠。",
    "ja": "市議会は三時間の討論の後、港の新しい計画を承認した。東側の桟橋の工事は来年の春、潜水士が点検できる天候になり次第始まる。"
    "ほとんどの議員が賛成し、反対したのは二人だけだった。",
    "ko": "시의회는 세 시간의 토론 끝에 항구의 새로운 계획을 승인했으며 동쪽 부두 공사는 내년 봄 잠수부가 점검할 수 있는 날씨가 되면 시작된다.",
    "ru": "Городской совет после трёхчасовых прений утвердил новый план гавани, и работы на восточном пирсе начнутся "
    "будущей весной, когда погода позволит водолазам осмотреть его.",
    "el": "Το δημοτικό συμβούλιο ενέκρινε το νέο σχέδιο για το λιμάνι ύστερα από συζήτηση τριών ωρών.",
    "ar": "وافق مجلس المدينة على الخطة الجديدة للميناء بعد نقاش دام ثلاث ساعات وستبدأ الأعمال في الرصيف الشرقي.",
    "hi": "नगर परिषद ने तीन घंटे की बहस के बाद बंदरगाह की नई योजना को मंजूरी दी और पूर्वी घाट का काम अगले वसंत में शुरू होगा।",
    "th": "สภาเมืองอนุมัติแผนใหม่ของท่าเรือหลังจากการอภิปรายสามชั่วโมง และงานที่ท่าเรือฝั่งตะวันออกจะเริ่มในฤดูใบไม้ผลิหน้า",
}

HARMLESS = {
    "figures": "1,234.56 7,890.12 (345) 12.5% 99,000 1 2 3 4 5 6 7 8 9 10 $20,000 €1.50 £3.40 " * 5,
    "dot leaders": "Introduction " + "." * 120 + " 3 Methods " + ". " * 90 + " 17 Results ________________ 21",
    "codes": "GTIN SKU XK-4711-B HTTPS HTML PDF ISO DIN VDE USB HDMI RJ45 WLAN LTE GPS MHz GHz kWh " * 3,
    "formulas": "∀x ∈ ℝ: ∑ aᵢ ≤ ∫ f(x) dx ⇒ α + β = γ² ∂u/∂t ≈ λ∇²u ≠ ∞ ± √2 × ÷ ∅ ⊂ ∪ ∩" * 2,
    "program": "for (int i = 0; i < n; ++i) { x[i] += y[i] * (a - b); } if (p != NULL && q->next) return -1;",
    "hashes": "3b1f9e 7ac0d4e1 deadbeef 0x7fff5fbff8a0 a94a8fe5ccb19ba61c4c0873d391e987982fbbd3",
    "boxes": "☐ yes ☐ no ☑ maybe ✓ ✗ • • • → ← ★★★★☆",
    "names": "Schwarzkopf Knížek Łukasiewicz Björnsson Þórðarson O'Brien MacGregor Nguyễn Çelik Øresund",
    "empty": "",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_language_is_taken_for_garbage(language: str) -> None:
    assert fault_of_language(LANGUAGES[language]) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_nor_is_it_in_capitals(language: str) -> None:
    assert fault_of_language(LANGUAGES[language].upper()) is None


@pytest.mark.parametrize("kind", HARMLESS)
def test_nor_is_what_stands_in_tables_and_formulas(kind: str) -> None:
    assert fault_of_language(HARMLESS[kind]) is None


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "it", "nl", "pt", "sv", "da"])
@pytest.mark.parametrize("shift", [1, 2, 3, 7, 13, 19, 25])
def test_shifted_letters_are_found(language: str, shift: int) -> None:
    letters = string.ascii_lowercase
    table = str.maketrans(letters, letters[shift:] + letters[:shift])
    assert fault_of_language(LANGUAGES[language].lower().translate(table))


def test_exchanged_letters_are_found() -> None:
    letters = list(string.ascii_lowercase)
    random.Random(3).shuffle(letters)
    table = str.maketrans(string.ascii_lowercase, "".join(letters))
    assert fault_of_language(LANGUAGES["en"].lower().translate(table))


def test_codes_taken_for_characters_are_found() -> None:
    """A font without ToUnicode whose glyph numbers are 29 below ASCII, as many TrueType subsets are."""
    shifted = "".join(chr(max(33, ord(character) - 29)) for character in LANGUAGES["en"])
    assert fault_of_language(shifted)


def test_mojibake_is_found() -> None:
    assert "UTF-8" in str(fault_of_language(LANGUAGES["fr"].encode().decode("cp1252", "replace")))


def test_symbol_soup_is_found() -> None:
    assert fault_of_language("".join(random.Random(5).choices("!\"#$%&'()*+/:;<=>?@[\\]^`{|}~", k=200)))


def test_random_han_is_found() -> None:
    rng = random.Random(1)
    assert fault_of_language("".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(200)))
    assert fault_of_language("".join(chr(rng.randrange(0x3400, 0x4DBF)) for _ in range(200)))


def test_rarely_printed_scripts_are_found() -> None:
    rng = random.Random(2)
    words = ("".join(chr(rng.randrange(0x1400, 0x1670)) for _ in range(6)) for _ in range(30))
    assert "rarely printed" in str(fault_of_language(" ".join(words)))


def test_mixed_alphabets_within_words_are_found() -> None:
    mixed = "".join(c if i % 2 else chr(0x430 + ord(c) % 32) for i, c in enumerate("thewaterhasrisenagain"))
    assert "mix alphabets" in str(fault_of_language(" ".join([mixed[i : i + 5] for i in range(16)])))


def test_short_texts_are_not_judged_by_language() -> None:
    assert fault_of_language("Xqz vkt") is None


@pytest.mark.parametrize("broken", ["\ufffd", "\ue123", "\uffff", "\U000f1234"])
def test_unmapped_characters_make_a_font_insane(broken: str) -> None:
    assert fault_of(FontSample("F", visible=True, texts=[broken * 4 + "text" * 5]))
    assert fault_of(FontSample("F", visible=True, texts=[broken + "text" * 50])) is None


def test_characters_that_pdfium_could_not_map_make_a_font_insane() -> None:
    assert "3 of 8" in str(fault_of(FontSample("F", visible=True, texts=["textlike"], unmapped=3)))
    assert fault_of(FontSample("F", visible=True, texts=["text"], controls=4))


def sample(text: str, font: str = "F", *, visible: bool = True) -> FontSample:
    return FontSample(font, visible, [text])


def test_a_page_without_text_is_absent() -> None:
    assert judge([]).verdict is TextVerdict.ABSENT
    assert judge([sample("")]).verdict is TextVerdict.ABSENT


def test_invisible_text_makes_a_page_hidden_and_a_visible_stamp_does_not_help() -> None:
    judgement = judge([sample(LANGUAGES["en"], visible=False), sample("Page 3 of 10", "Stamp")])
    assert judgement.verdict is TextVerdict.HIDDEN
    assert "invisible" in judgement.reasons[0]


def test_a_little_invisible_text_is_left_out_of_a_sane_page() -> None:
    judgement = judge([sample(LANGUAGES["en"]), sample("caption", "G", visible=False)])
    assert judgement.verdict is TextVerdict.SANE
    assert judgement.visible_only


def test_a_formula_font_does_not_condemn_the_page() -> None:
    judgement = judge([sample(LANGUAGES["en"]), sample("\ue000\ue001\ue002", "Math")])
    assert judgement.verdict is TextVerdict.SANE
    assert judgement.insane_fonts == {"Math"}
    assert "Math" in judgement.reasons[0]


def test_a_garbled_body_font_condemns_the_page() -> None:
    judgement = judge([sample("\ue000\ue001\ue002" * 40, "Body"), sample(LANGUAGES["en"][:80], "Heading")])
    assert judgement.verdict is TextVerdict.GARBLED


def test_text_garbled_over_many_small_fonts_is_found_on_the_page() -> None:
    shifted = LANGUAGES["en"].lower().translate(str.maketrans(string.ascii_lowercase, "defghijklmnopqrstuvwxyzabc"))
    words = shifted.split()
    fonts = [sample(" ".join(words[i : i + 3]), f"F{i}") for i in range(0, len(words), 3)]
    assert judge(fonts).verdict is TextVerdict.GARBLED
