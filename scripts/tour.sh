#!/usr/bin/env bash
# Builds claw and lets several agents look at this repository side by side: workflows/tour.toml.
#
#   scripts/tour.sh [arguments for `claw run`]
#
# With ANTHROPIC_API_KEY, OPENAI_API_KEY or XAI_API_KEY set, the agents are that service's model. With none
# of them a small model is set up on this machine (scripts/setup-local-model.sh) and used; WIRE=anthropic
# talks to it over the other of its two interfaces. CLAW_BIN names a claw that is built already.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
say() { printf '%s\n' "$*" >&2; }

build() {
  if ! command -v cargo >/dev/null; then
    say "tour: cargo is missing; install Rust from https://rustup.rs and run this again"
    exit 1
  fi
  say "tour: building claw, this takes some minutes the first time (cargo build --release)"
  cargo build --release --locked --package claw-cli >&2
  claw=${CARGO_TARGET_DIR:-$root/target}/release/claw
}

has_service() {
  [ -n "${ANTHROPIC_API_KEY:-}${ANTHROPIC_AUTH_TOKEN:-}${OPENAI_API_KEY:-}${XAI_API_KEY:-}" ]
}

# Sets up the local model and points claw at it. A server that ran before keeps running.
use_local_model() {
  local url
  say "tour: no ANTHROPIC_API_KEY, OPENAI_API_KEY or XAI_API_KEY is set: using a small model on this machine."
  say "tour: it is real but tiny (135 million parameters): expect real tokens, not wisdom."
  if ! scripts/setup-local-model.sh status >/dev/null; then
    trap 'scripts/setup-local-model.sh stop' EXIT
  fi
  url=$(scripts/setup-local-model.sh start)
  case ${WIRE:-openai} in
    openai)
      export OPENAI_BASE_URL=$url/v1 OPENAI_API_KEY=none
      model=(--model openai/local)
      ;;
    anthropic)
      export ANTHROPIC_BASE_URL=$url ANTHROPIC_API_KEY=none
      model=(--model claude-local)
      ;;
    *)
      say "tour: WIRE is openai or anthropic, not '$WIRE'"
      exit 2
      ;;
  esac
}

claw=${CLAW_BIN:-}
[ -n "$claw" ] || build
model=()
has_service || use_local_model

# Ctrl-C goes to claw, which stops its agents and says how to go on; this script outlives it to clean up.
trap : INT
code=0
"$claw" run workflows/tour.toml ${model[@]+"${model[@]}"} "$@" || code=$?
exit "$code"
