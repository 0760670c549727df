from __future__ import annotations

import importlib
import sys

import pytest

from pagemill.domain.errors import MissingDependencyError


def test_the_error_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    monkeypatch.delitem(sys.modules, "pagemill.bench.quality.similarity", raising=False)
    with pytest.raises(MissingDependencyError, match="pip install rapidfuzz"):
        importlib.import_module("pagemill.bench.quality.similarity")
