"""The command line as a user runs it, in processes of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]
MakePdf = Callable[..., Path]

FAIL_SECOND = {"PAGEMILL_ENGINE__OPTIONS": '{"fail_page": 2}'}


def test_an_engine_of_another_package_plugs_in(tmp_path: Path, make_pdf: MakePdf, run_cli: Cli) -> None:
    done = run_cli("convert", make_pdf(tmp_path / "a.pdf", 2), "-o", tmp_path / "out", "--engine", "fake")
    assert done.returncode == 0, done.stderr
    assert "# Page 2" in (tmp_path / "out" / "a.md").read_text()
    assert "otherocr 1.0" in run_cli("engines").stdout


def test_the_document_service_starts_no_vllm_and_says_what_does(run_cli: Cli) -> None:
    done = run_cli("gateway", "--engine", "vllm", "--port", "0")
    assert done.returncode == 2
    assert "pagemill serve" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (
            "nonesuch",
            "There is no engine named 'nonesuch'. Installed engines: broken, embedded, fake, openai, unfinished.",
        ),
        ("broken", "needs a package that is not installed"),
        ("unfinished", "does not keep to pagemill.engines.Engine"),
    ],
)
def test_engines_that_cannot_be_had_are_usage_errors(
    tmp_path: Path, make_pdf: MakePdf, run_cli: Cli, engine: str, message: str
) -> None:
    done = run_cli("convert", make_pdf(tmp_path / "a.pdf"), "-o", tmp_path / "out", "--engine", engine)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.pdf"], "missing.pdf does not exist"),
        (["a.pdf", "--pages", "3-1"], "ends before it starts"),
        (["a.pdf", "--format", "docx"], "--format does not know 'docx'"),
        (["a.pdf", "--stdout", "--json"], "both want standard output"),
        (["a.pdf", "--password", "x", "--password-file", "y"], "both given"),
        (["a.pdf", "--password-file", "none.txt"], "cannot be read"),
        (["a.pdf", "--config", "none.toml"], "does not exist"),
        (["a.pdf", "--long-side", "30000"], "long_side is 30000"),
        (["a.pdf", "--output", "a.pdf/x"], "cannot be written"),
    ],
)
def test_mistakes_get_one_clear_line(
    tmp_path: Path, make_pdf: MakePdf, run_cli: Cli, arguments: list[str], message: str
) -> None:
    make_pdf(tmp_path / "a.pdf")
    done = run_cli("convert", *arguments, "--engine", "fake", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_exit_statuses_tell_good_partial_and_failed_apart(tmp_path: Path, make_pdf: MakePdf, run_cli: Cli) -> None:
    make_pdf(tmp_path / "good.pdf", 1)
    make_pdf(tmp_path / "half.pdf", 2)
    (tmp_path / "bad.pdf").write_text("nothing")
    out = ("-o", tmp_path / "out", "--engine", "fake")
    codes = {
        name: run_cli("convert", tmp_path / name, *out, **FAIL_SECOND).returncode
        for name in ("good.pdf", "half.pdf", "bad.pdf")
    }
    assert codes == {"good.pdf": 0, "half.pdf": 3, "bad.pdf": 1}
    everything = run_cli("convert", tmp_path / "*.pdf", *out, **FAIL_SECOND)
    assert everything.returncode == 3
    assert "3 documents: 1 good, 1 partial, 1 failed" in everything.stderr
    retried = run_cli("convert", tmp_path / "half.pdf", *out, "--retry-failed")
    assert retried.returncode == 0


def test_standard_input_and_output(tmp_path: Path, make_pdf: MakePdf, run_cli: Cli) -> None:
    data = make_pdf(tmp_path / "a.pdf", 2).read_bytes()
    done = run_cli("convert", "-", "--stdout", "--engine", "fake", "--pages", "2", stdin=data, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<!-- page 2 -->\n\n# Page 2\n")
    assert not (tmp_path / "out").exists()


def test_json_events_are_all_that_stands_on_standard_output(tmp_path: Path, make_pdf: MakePdf, run_cli: Cli) -> None:
    done = run_cli("convert", make_pdf(tmp_path / "a.pdf", 2), "-o", tmp_path / "out", "--engine", "fake", "--json")
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert events == ["run_started", "document_started", "page_finished", "page_finished", "document_finished"]
    assert done.stderr == ""


def test_quiet_says_nothing_when_all_is_good(tmp_path: Path, make_pdf: MakePdf, run_cli: Cli) -> None:
    done = run_cli("convert", make_pdf(tmp_path / "a.pdf"), "-o", tmp_path / "out", "--engine", "fake", "--quiet")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_all_formats_and_the_mirrored_tree(tmp_path: Path, make_pdf: MakePdf, run_cli: Cli) -> None:
    make_pdf(tmp_path / "in" / "2025" / "März 三月" / "a.pdf")
    make_pdf(tmp_path / "in" / "b.pdf", text="b")
    done = run_cli("convert", tmp_path / "in", "-o", tmp_path / "out", "--engine", "fake", "-f", "md,json,html,txt")
    assert done.returncode == 0, done.stderr
    for suffix in ("md", "json", "html", "txt"):
        assert (tmp_path / "out" / "2025" / "März 三月" / f"a.{suffix}").is_file()
        assert (tmp_path / "out" / f"b.{suffix}").is_file()


def test_a_password_never_shows(tmp_path: Path, make_pdf: MakePdf, run_cli: Cli) -> None:
    import pikepdf

    with pikepdf.open(make_pdf(tmp_path / "plain.pdf")) as pdf:
        pdf.save(tmp_path / "locked.pdf", encryption=pikepdf.Encryption(user="hunter2", owner="o"))
    out = ("-o", tmp_path / "out", "--engine", "fake", "--log-level", "debug")
    refused = run_cli("convert", tmp_path / "locked.pdf", *out, "--password", "wrong-one")
    assert refused.returncode == 1
    assert "--password" in refused.stderr
    opened = run_cli("convert", tmp_path / "locked.pdf", *out, "--password", "hunter2")
    assert opened.returncode == 0, opened.stderr
    for text in (refused.stderr, opened.stderr, (tmp_path / "out" / "locked.json").read_text()):
        assert "hunter2" not in text
        assert "wrong-one" not in text


def test_help_and_version(run_cli: Cli) -> None:
    assert run_cli("--version").stdout.startswith("pagemill 0.")
    assert "Exit status" in run_cli("convert", "--help").stdout


@pytest.mark.parametrize(
    ("command", "default"),
    [(["convert"], "md,json"), (["gateway"], "8080"), (["serve"], "lightonocr"), (["keys", "create"], "pagemill-data")],
)
def test_help_tells_the_defaults(run_cli: Cli, command: list[str], default: str) -> None:
    shown = run_cli(*command, "--help").stdout
    assert f"[default: {default}]" in " ".join(shown.replace("│", " ").split())


def test_the_commands_of_a_remedy_stand_on_one_line(run_cli: Cli) -> None:
    done = run_cli("gateway", "--engine", "vllm", "--port", "0", COLUMNS="40")
    assert "Start both with `pagemill serve`, or give --endpoint with --engine openai." in done.stderr
