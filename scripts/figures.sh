#!/usr/bin/env bash
# Measures claw as a whole process: time, CPU and memory of its main jobs, against a provider on this machine.
#
#   scripts/figures.sh [claw]      default: target/release/claw, built where it is missing
#
# Needs GNU time (package `time`). Absolute figures of a busy machine mean little: run it on a quiet one.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
claw=${1:-$target/release/claw}
[ -x /usr/bin/time ] || { echo "figures: GNU time is missing (package time)" >&2; exit 1; }
[ -x "$claw" ] || cargo build --release --locked --package claw-cli
claw=$(realpath "$claw")
cargo build --quiet --release --locked --package claw-kit --example provider
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# provider MILLIS: a provider in the background; its address is in ANTHROPIC_BASE_URL.
provider() {
  rm -f "$work/in"; mkfifo "$work/in"
  "$target/release/examples/provider" "$1" <"$work/in" >"$work/provider" &
  exec 9>"$work/in"
  until [ -s "$work/provider" ]; do read -r -t 0.05 <> <(:) || true; done
  export ANTHROPIC_BASE_URL ANTHROPIC_API_KEY=none
  ANTHROPIC_BASE_URL=$(head -1 "$work/provider")
}

provider_ends() { exec 9>&-; wait; tail -n +2 "$work/provider" | sed 's/^/    server: /'; }

# measure NAME NODES COMMAND…: one run, its wall time, CPU (and CPU for each node), peak memory.
measure() {
  local name=$1 nodes=$2
  shift 2
  (cd "$work/project" && /usr/bin/time -o "$work/time" -f '%e %U %S %M' "$@" >/dev/null 2>"$work/err") ||
    { echo "$name failed:"; tail -5 "$work/err"; return 0; }
  awk -v name="$name" -v nodes="$nodes" '{ cpu = $2 + $3;
    printf "%-44s wall %6.2f s  cpu %5.2f s", name, $1, cpu
    if (nodes > 1) printf " (%6.0f us a node)", cpu * 1e6 / nodes
    printf "  peak %5.1f MB\n", $4 / 1024 }' "$work/time"
}

workflow() { mkdir -p "$work/project"; cat >"$work/project/$1.toml"; }

head_of() { printf 'schema = 1\n[workflow]\nname = "%s"\nresult = "1"\n[limits]\nconcurrency = %s\nagents = 20000\n' "$1" "$2"; }

{ head_of fan 200; printf '[node.a]\nagent = "Explore"\nprompt = "item {{ item }}"\n[node.a.each]\nrange = 1000\nkey = "{{ item }}"\n'; } | workflow fan
{ head_of fan100 200; printf '[node.a]\nagent = "Explore"\nprompt = "item {{ item }}"\n[node.a.each]\nrange = 100\nkey = "{{ item }}"\n'; } | workflow fan100
{ head_of fan10000 200; printf '[node.a]\nagent = "Explore"\nprompt = "item {{ item }}"\n[node.a.each]\nrange = 10000\nkey = "{{ item }}"\n'; } | workflow fan10000
{ head_of calls 128; printf '[node.a]\nprompt = "CALL {{ item }}"\n[node.a.each]\nrange = 128\nkey = "{{ item }}"\n'; } | workflow calls
{
  head_of chain 16
  printf '[node.n0]\nkind = "set"\nvalue = "0"\n'
  for n in $(seq 99); do printf '[node.n%s]\nkind = "set"\nneeds = ["n%s"]\nvalue = "n%s + 1"\n' "$n" $((n - 1)) $((n - 1)); done
} | workflow chain
{
  head_of commands 16
  printf '[node.n0]\nkind = "command"\nrun = ["true"]\n'
  for n in $(seq 99); do printf '[node.n%s]\nkind = "command"\nneeds = ["n%s"]\nrun = ["true"]\n' "$n" $((n - 1)); done
} | workflow commands
{
  head_of wide 16
  for n in $(seq 0 99999); do printf '[node.n%s]\nkind = "set"\nvalue = "1"\n' "$n"; done
} | workflow wide

measure 'claw --version' 1 "$claw" --version
provider 0
measure 'one question, one answer' 1 "$claw" -p hello
provider_ends
provider 0
measure 'fan-out of 100, one answer each' 100 "$claw" run fan100.toml
measure 'fan-out of 1,000, one answer each' 1000 "$claw" run fan.toml
measure 'fan-out of 10,000, one answer each' 10000 "$claw" run fan10000.toml
provider_ends
provider 200
measure '128 agents, 200 ms, one bash call each' 128 "$claw" run calls.toml
provider_ends
measure 'chain of 100 sets' 100 "$claw" run chain.toml
measure 'chain of 100 commands' 100 "$claw" run commands.toml
measure 'plan of 100,000 nodes' 100000 "$claw" workflow check wide.toml
