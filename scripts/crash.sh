#!/usr/bin/env bash
# Kills claw at different moments of a run and resumes it: what was finished is never asked again.
#
#   scripts/crash.sh [MOMENTS]   default 5
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CLAW_CRASH_POINTS=${1:-5}
suite=(cargo test --locked --package claw-cli --test it)

# A filter that matches nothing would pass in silence.
if ! "${suite[@]}" -- --list crash:: 2>/dev/null | grep -q ': test$'; then
  printf 'crash: there are no tests in the module crash of tests/it\n' >&2
  exit 1
fi
exec "${suite[@]}" -- crash::
