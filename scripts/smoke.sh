#!/usr/bin/env bash
# The main job once, with a real language model on this machine: the tour must end well, leave a final
# manifest for each agent and print a merged result.
#
#   scripts/smoke.sh
#
# CLAW_BIN names the claw to use (default: the debug build). WIRE as for scripts/tour.sh.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '%s\n' "$*" >&2; }
fail() { say "smoke: $*"; exit 1; }

export CLAW_BIN=${CLAW_BIN:-${CARGO_TARGET_DIR:-target}/debug/claw}
[ -x "$CLAW_BIN" ] || cargo build --locked --package claw-cli >&2
# The model is the local one, whatever keys are set: the smoke run costs nothing and needs no account.
unset ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN OPENAI_API_KEY XAI_API_KEY

begin=$SECONDS
result=$(timeout 900 scripts/tour.sh) || fail "the tour ended with exit code $?"
[ -n "$result" ] || fail "the tour printed no result"
run=$(ls -d .claw/runs/*/ | sort | tail -n 1)
manifests=$(find "$run" -name manifest.json)
count=$(wc -l <<<"$manifests")
[ "$count" -ge 4 ] || fail "$count manifests in $run, expected those of three agents, a plan and a merge"
while read -r file; do
  grep -q '"status": "completed"' "$file" || fail "$file does not say completed"
done <<<"$manifests"
say "smoke: ok after $((SECONDS - begin)) s, $count manifests in $run"
