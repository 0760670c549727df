"""Plots of the figures of `bench/quality.py`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from quality_report import (
    FILES,
    IMAGES,
    LANGUAGES,
    PIXELS,
    average,
    error_rate,
    grouped,
    seconds_per_page,
    words_found,
)

BLUE, ORANGE, GREY = "#2f6690", "#d1802f", "#9aa5ad"


def write_plots(results: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draws all plots that the figures allow; returns their files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [_languages(results, folder / "quality-languages.png")]
    if FILES in results["runs"]:
        files.append(_categories(results, folder / "quality-categories.png"))
    files.append(_seconds(results, folder / "quality-seconds.png"))
    return files


def _finish(figure: plt.Figure, file: Path) -> Path:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    # Without the version of Matplotlib in it, an unchanged plot is an unchanged file.
    figure.savefig(file, dpi=110, metadata={"Software": None})
    plt.close(figure)
    return file


def _languages(results: Mapping[str, Any], file: Path) -> Path:
    documents = {d["id"]: d for d in results["runs"][IMAGES]["documents"]}
    codes = [name.removeprefix("lang_") for name in documents if name.startswith("lang_")]
    figure, axes = plt.subplots(figsize=(8.5, 3.4))
    for offset, kind, label, color in ((-0.2, "lang_", "clean image", BLUE), (0.2, "scan_", "poor scan", ORANGE)):
        values = [100 * (error_rate(documents[kind + code]) or 0) for code in codes]
        bars = axes.bar([i + offset for i in range(len(codes))], values, 0.38, label=label, color=color)
        axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=1)
    axes.set_xticks(range(len(codes)), [LANGUAGES[code] for code in codes], rotation=30, ha="right")
    axes.set_ylabel("character error rate, %")
    axes.set_title("Generated prose in eleven languages, read from pixels", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    return _finish(figure, file)


def _categories(results: Mapping[str, Any], file: Path) -> Path:
    ways = {
        name: grouped(results["runs"][name]["documents"], lambda d: d["category"].replace("_", " "))
        for name in (FILES, PIXELS)
    }
    known = [group for group in ways[PIXELS] if average(map(words_found, ways[PIXELS][group])) is not None]
    known.sort(key=lambda group: average(map(words_found, ways[PIXELS][group])) or 0)
    figure, axes = plt.subplots(figsize=(8.5, 0.42 * len(known) + 1.2))
    for offset, name, color in ((0.2, FILES, GREY), (-0.2, PIXELS, BLUE)):
        values = [100 * (average(map(words_found, ways[name][group])) or 0) for group in known]
        bars = axes.barh([i + offset for i in range(len(known))], values, 0.38, label=name, color=color)
        axes.bar_label(bars, fmt="%.0f", fontsize=7, padding=2)
    axes.set_yticks(range(len(known)), known)
    axes.set_xlim(0, 108)
    axes.set_xlabel("words found, %")
    axes.set_title("Real documents by category", fontsize=10, pad=20)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 0.99), ncol=2)
    return _finish(figure, file)


def _seconds(results: Mapping[str, Any], file: Path) -> Path:
    names = list(results["runs"])
    values = [
        [value for d in results["runs"][name]["documents"] if (value := seconds_per_page(d)) is not None]
        for name in names
    ]
    figure, axes = plt.subplots(figsize=(8.5, 0.5 * len(names) + 1.3))
    axes.boxplot(
        values,
        orientation="horizontal",
        widths=0.55,
        patch_artist=True,
        boxprops={"facecolor": "#cfe0ec", "edgecolor": BLUE},
        medianprops={"color": ORANGE},
        flierprops={"markersize": 3},
    )
    axes.set_yticks(range(1, len(names) + 1), names)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds of recognition per page (box: half of the documents, line: median)")
    return _finish(figure, file)
