#!/usr/bin/env bash
# ensure.sh VENV: installs the CPU build of vLLM that some tests serve with, once; prints the path of its executable, or
# nothing where that cannot be: those tests are then skipped, and the reason is said on standard error.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$1
say() { echo "Tests with a real vLLM are skipped: $*" >&2; }
if [ -f "$venv/.complete" ]; then
  echo "$(cd "$venv" && pwd)/bin/vllm"
  exit 0
fi
[ "$(uname -sm)" = "Linux x86_64" ] || { say "its CPU build is for Linux on x86_64."; exit 0; }
[ "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" = 3.11 ] || { say "it is set up for Python 3.11."; exit 0; }
free=$(df -Pk "$(dirname "$venv")" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "$free" -ge 8 ] || { say "$free GiB are free on the disk, and it needs 8."; exit 0; }
rm -rf "$venv"
log=$(mktemp)
if "$here/install.sh" "$venv" > "$log" 2>&1; then
  touch "$venv/.complete"
  echo "$(cd "$venv" && pwd)/bin/vllm"
else
  say "it could not be installed:"
  tail -5 "$log" >&2
fi
rm -f "$log"
