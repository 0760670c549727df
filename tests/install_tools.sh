#!/usr/bin/env bash
# Installs the programs that some tests run (they are skipped where one is missing): only on Debian and as root.
set -euo pipefail
declare -A package=([pdftoppm]=poppler-utils [curl]=curl [/usr/lib/postgresql]=postgresql)
missing=()
for tool in "${!package[@]}"; do
  [ -e "$tool" ] || command -v "$tool" > /dev/null || missing+=("${package[$tool]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
else
  echo "Some tests will be skipped: ${missing[*]} is not installed."
fi
