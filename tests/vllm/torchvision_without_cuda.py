"""Lets PyPI's torchvision, which is built for CUDA, be imported beside a PyTorch for CPUs.

Its extension does not load without libtorch_cuda, and then `import torchvision` dies with "operator torchvision::nms
does not exist". Only the schemas of two operators are missing: they are declared just before torchvision is imported.
The image processors use its transforms, which are Python. install.sh puts this file into site-packages.
"""

from __future__ import annotations

import sys


class _DeclareOperators:
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Finds nothing, but acts when torchvision is asked for."""
        if name != "torchvision":
            return
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        import torch

        if torch.version.cuda is None:
            library = torch.library.Library("torchvision", "FRAGMENT")
            for operator in ("nms", "qnms"):
                library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            # The declarations last as long as the object.
            torch._pagemill_torchvision_library = library


sys.meta_path.insert(0, _DeclareOperators())  # type: ignore[arg-type]
