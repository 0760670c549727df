"""What a server's error means: its class, its remedy, and whether another start can help; pure.

The wording of the patterns is that of vLLM, PyTorch, huggingface_hub and the Linux kernel. Those marked "provoked" were
seen on a running vLLM 0.32.0, whose lines are test data; the others were taken from the sources of those projects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class ErrorClass(str, Enum):
    """Kinds of errors of a server."""

    OOM = "oom"
    TIMEOUT = "timeout"
    MODEL_ERROR = "model_error"
    CUDA = "cuda"
    LOAD = "load"
    BAD_INPUT = "bad_input"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ServerError:
    """A classified error.

    Attributes:
        kind: Its class.
        message: The line that says what happened.
        remedy: What to do.
        permanent: Whether a start with the same options will fail in the same way.
    """

    kind: ErrorClass
    message: str
    remedy: str
    permanent: bool = False

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.message.rstrip('.')}. {self.remedy}"


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: ErrorClass
    pattern: re.Pattern[str]
    remedy: str
    permanent: bool = False


def _rule(kind: ErrorClass, pattern: str, remedy: str, *, permanent: bool = False) -> _Rule:
    return _Rule(kind, re.compile(pattern), remedy, permanent)


_RULES: tuple[_Rule, ...] = (
    # Options (provoked).
    _rule(
        ErrorClass.BAD_INPUT,
        r"error: unrecognized arguments|error: argument |error: ambiguous option|error: the following arguments",
        "Correct the flags after the --; this vLLM's own are listed by: vllm serve --help=all.",
        permanent=True,
    ),
    _rule(
        ErrorClass.BAD_INPUT,
        r"max_model_len \(\d+\) is greater than the derived",
        "Lower --max-model-len, or leave it out for the model's own.",
        permanent=True,
    ),
    _rule(
        ErrorClass.BAD_INPUT,
        r"World size \(\d+\) is larger than the number of available GPUs|[Tt]ensor parallel size .*(?:exceed|larger)"
        r"|must be divisible by tensor parallel size",
        "Lower --tensor-parallel to 1 and --gpus to the GPUs that are there.",
        permanent=True,
    ),
    _rule(
        ErrorClass.BAD_INPUT,
        r"Bfloat16 is only supported on GPUs with compute capability",
        "This GPU is too old for bfloat16: give --dtype half.",
        permanent=True,
    ),
    _rule(
        ErrorClass.OTHER,
        r"\[Errno (?:98|48)\].*[Aa]ddress already in use",
        "Another process took the port: give --port auto, or stop that process.",
    ),
    # Memory. The cache's lines were provoked; the wording of torch is that of c10/cuda/CUDACachingAllocator.cpp and
    # c10/core/impl/alloc_cpu.cpp.
    _rule(
        ErrorClass.OOM,
        r"KV cache is needed, which is larger than the available|No available memory for the cache blocks"
        r"|max seq len .* is larger than the maximum number of tokens that can be stored in KV cache",
        "The memory for pages in flight is too small: lower --max-model-len (8192 is enough for most pages), or raise "
        "--gpu-memory-utilization or --kv-cache-memory-bytes.",
        permanent=True,
    ),
    _rule(
        ErrorClass.OOM,
        r"Free memory on device .* is less than desired",
        "Another process uses the GPU: look at nvidia-smi, stop it or lower --gpu-memory-utilization.",
    ),
    _rule(
        ErrorClass.OOM,
        r"Available memory on node .* is less than desired CPU memory utilization",
        "Other processes use this machine's memory: stop them or lower --gpu-memory-utilization, which on a CPU is the "
        "part of its memory.",
    ),
    _rule(
        ErrorClass.OOM,
        r"OutOfMemoryError|CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|HIP out of memory",
        "The GPU's memory is full: look at nvidia-smi for other processes, then lower --max-num-seqs, "
        "--max-num-batched-tokens or --gpu-memory-utilization.",
    ),
    _rule(
        ErrorClass.OOM,
        r"not enough memory: you tried to allocate|DefaultCPUAllocator|(?<!\w)MemoryError|std::bad_alloc"
        r"|\[Errno 12\]|Cannot allocate memory|failed to map segment from shared object",
        "The machine's memory is full or limited (ulimit -v, the container's limit): free or raise it.",
    ),
    _rule(
        ErrorClass.OOM,
        r"No space left on device: '/(?:psm|dev/shm)|[Bb]us error|SIGBUS",
        "Shared memory is too small: start the container with --shm-size 1g or --ipc host.",
    ),
    # The driver: wording of c10/cuda/CUDAException.h, torch/cuda/__init__.py and NCCL.
    _rule(
        ErrorClass.CUDA,
        r"Found no NVIDIA driver|NVIDIA driver on your system is too old|CUDA driver version is insufficient"
        r"|Failed to infer device type|libcuda\.so",
        "Install a GPU driver that fits this vLLM's CUDA, or give --device cpu with a CPU build of vLLM.",
        permanent=True,
    ),
    _rule(
        ErrorClass.CUDA,
        r"no kernel image is available for execution",
        "This vLLM was built without this GPU's generation: install another build.",
        permanent=True,
    ),
    _rule(
        ErrorClass.CUDA,
        r"CUDA error|CUDA_ERROR_|cudaError|CUBLAS_STATUS|CUDNN_STATUS|NCCL (?:error|WARN)|ncclSystemError"
        r"|ncclUnhandledCudaError|illegal memory access|device-side assert|Xid",
        "The GPU failed under the server: look at nvidia-smi and at dmesg for Xid errors; if it stays, restart the "
        "machine or leave that GPU out with CUDA_VISIBLE_DEVICES.",
    ),
    # The model's files.
    _rule(
        ErrorClass.LOAD,
        r"Invalid repository ID or local directory|HFValidationError|does not appear to have a file named"
        r"|Cannot find any model weights|Can't load (?:the )?(?:configuration|tokenizer|processor)",
        "The model's folder is not there or not whole: it needs config.json, tokenizer.json, preprocessor_config.json "
        "and *.safetensors. Download it again, or correct --model.",
        permanent=True,
    ),
    _rule(
        ErrorClass.LOAD,
        r"SafetensorError|HeaderTooLarge|InvalidHeader|MetadataIncompleteBuffer|Unable to load weights",
        "A weights file is damaged or cut: compare its size with the hub's and download it again.",
        permanent=True,
    ),
    _rule(
        ErrorClass.LOAD,
        r"RepositoryNotFoundError|GatedRepoError|RevisionNotFoundError|Repository Not Found|401 Client Error"
        r"|is not a valid model identifier",
        "The hub knows no such model for you: check --model and --source, and HF_TOKEN for private models.",
        permanent=True,
    ),
    _rule(
        ErrorClass.LOAD,
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled|offline mode is enabled"
        r"|Cannot find an appropriate cached snapshot",
        "The model has not been downloaded and this is offline: download it on a machine with a network and give its "
        "folder as --model.",
        permanent=True,
    ),
    _rule(
        ErrorClass.LOAD,
        r"couldn't connect to|Name or service not known|Temporary failure in name resolution|Network is unreachable"
        r"|MaxRetryError|ConnectionError|ConnectError|SSLError",
        "The hub cannot be reached: check network and proxy, give a mirror (serve.hub_endpoint), --source modelscope, "
        "or a folder as --model.",
    ),
    _rule(
        ErrorClass.LOAD,
        r"No space left on device",
        "The disk is full: the model takes 2 GB in the hub's cache (HF_HOME).",
        permanent=True,
    ),
    _rule(
        ErrorClass.LOAD,
        r"Model architectures .* (?:are not supported|failed to be inspected)|does not recognize this architecture"
        r"|has no vLLM implementation",
        "This vLLM does not know the model: LightOnOCR needs vllm 0.12 or later; known to be good: vllm==0.30.0 and "
        "transformers==5.16.1.",
        permanent=True,
    ),
    _rule(
        ErrorClass.LOAD,
        r"ImportError|ModuleNotFoundError|AttributeError: module|undefined symbol|cannot open shared object file",
        "Packages of vLLM's environment do not fit together; known to be good: vllm==0.30.0 and "
        "transformers==5.16.1, in an environment of their own.",
        permanent=True,
    ),
    # Pages: vLLM's words for an image that it cannot read.
    _rule(
        ErrorClass.BAD_INPUT,
        r"UnidentifiedImageError|cannot identify image file|DecompressionBombError|Failed to load image"
        r"|image file is truncated|Invalid base64",
        "A client sent what is no image; the server goes on.",
    ),
    # The engine at work. Its death by a signal was provoked.
    _rule(
        ErrorClass.TIMEOUT,
        r"TimeoutError|RPC call to \w+ timed out|execute_model timed out|[Rr]ead timed out|timed out waiting",
        "A part of the server did not answer in time; if it stays, look at the load of the machine and GPU.",
    ),
    _rule(
        ErrorClass.MODEL_ERROR,
        r"EngineCore encountered a fatal error|EngineDeadError|died unexpectedly|Engine core proc .* died",
        "The engine died at work; the error before this one says why, and dmesg tells of a kill for memory.",
    ),
    _rule(
        ErrorClass.MODEL_ERROR,
        r"shape mismatch|size mismatch|AssertionError|must match the size of tensor|IndexError|KeyError",
        "The model's code failed: compare vLLM and transformers with the known pairs, and report the log.",
    ),
)
_CONSEQUENCES = re.compile(
    r"See root cause above|[Ss]ee stack trace|WorkerProc initialization failed|EngineDeadError|Failed core proc"
    r"|Engine core proc .* died"
    r"|died unexpectedly"
)


def classify(text: str) -> ServerError | None:
    """The error in a log record, whose first rule decides; None where no rule knows it.

    Args:
        text: All lines of the record.
    """
    for rule in _RULES:
        if match := rule.pattern.search(text):
            return ServerError(rule.kind, _line_at(text, match.start()), rule.remedy, rule.permanent)
    return None


def is_noise(text: str) -> bool:
    """Whether a record looks like an error and is none: Python's clean-up of shared memory that is gone already."""
    return "multiprocessing/resource_tracker.py" in text


def is_consequence(text: str) -> bool:
    """Whether a record tells only that something else failed before it."""
    return _CONSEQUENCES.search(text) is not None


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : end if end >= 0 else len(text)].strip()
