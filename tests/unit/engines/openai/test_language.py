from __future__ import annotations

import pytest

from pagemill.engines.openai.language import guess_language

TEXTS = {
    "en": "The council approved the second phase of the river project, and engineers will remove two of the weirs.",
    "fr": "Le conseil a approuvé la deuxième phase du projet, et les ingénieurs enlèveront des seuils dans la plaine.",
    "de": "Der Stadtrat genehmigte die zweite Phase, und die Ingenieure werden das Ufer mit Weiden bepflanzen.",
    "es": "El ayuntamiento aprobó la segunda fase del proyecto y los ingenieros retirarán las presas por la ribera.",
    "it": "Il consiglio ha approvato la seconda fase della ristrutturazione, che sono gli argini del fiume nel parco.",
    "nl": "De gemeenteraad keurde de tweede fase van het project goed en de stuwen worden door het team niet hersteld.",
    "pt": "A câmara aprovou a segunda fase do projeto e os engenheiros vão remover dos rios os açudes, não as pontes.",
    "sv": "Kommunfullmäktige godkände den andra fasen och ingenjörerna ska ta bort dammar som är för gamla, inte alla.",
    "da": "Byrådet godkendte den anden fase af projektet, og dæmninger som ikke er blevet brugt af byen fjernes.",
    "zh": "市议会批准了河流治理项目的第二阶段，工程师将拆除两座废弃的堰坝，并拓宽洪泛区。",
    "ja": "市議会は河川再生事業の第二段階を承認した。技術者は老朽化した堰を二つ撤去する予定である。",
}


@pytest.mark.parametrize("language", TEXTS)
def test_each_language_is_told(language: str) -> None:
    assert guess_language(TEXTS[language]) == language


@pytest.mark.parametrize("text", ["", "12.50 EUR", "Item Qty Price Bolt Nut Washer Screw Flange", "ACME GmbH"])
def test_too_little_is_not_guessed(text: str) -> None:
    assert guess_language(text) is None
