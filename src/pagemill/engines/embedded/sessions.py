"""ONNX Runtime sessions, set up for documents on CPUs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from pagemill.domain.errors import EngineError
from pagemill.engines.embedded.weights import Weights, read_verified

FloatArray = npt.NDArray[np.float32]


class Session:
    """A model with one input. `run` may be called from several threads at once.

    Args:
        weights: Which model.
    """

    def __init__(self, weights: Weights) -> None:
        options = ort.SessionOptions()
        # One thread a call, and several calls at once: calls that share their work wait for each other.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Each width of a line is another shape: an arena would keep the largest buffers of all of them.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        self._name = weights.path
        model = read_verified(weights)
        try:
            self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the runtime has no common base class for its errors
            raise EngineError(
                f"The model {weights.path} could not be loaded ({error}).",
                "Install a version of onnxruntime for this machine: pip install --upgrade onnxruntime.",
            ) from error
        self._input: str = self._session.get_inputs()[0].name

    @property
    def metadata(self) -> dict[str, str]:
        """Free-form properties that the model carries."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    def run(self, tensor: FloatArray) -> list[FloatArray]:
        """All outputs for one input tensor.

        Raises:
            EngineError: The runtime failed.
        """
        try:
            outputs: list[Any] = self._session.run(None, {self._input: tensor})
        except Exception as error:
            raise EngineError(
                f"The model {self._name} failed on a tensor of shape {tensor.shape} ({error})."
            ) from error
        return outputs
