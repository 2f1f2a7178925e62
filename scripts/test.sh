#!/usr/bin/env bash
# Installs what the tests need where it is missing, then checks formatting and lints and runs all tests.
#
#   scripts/test.sh
#
# Needs a Rust toolchain with rustfmt and clippy (rust-toolchain.toml names it), a C compiler and git. The
# last two are installed with apt where they are missing and apt is there.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '%s\n' "$*" >&2; }

# need COMMAND PACKAGE
need() {
  command -v "$1" >/dev/null && return
  local sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  if command -v apt-get >/dev/null; then
    say "test: installing $2"
    "${sudo[@]}" apt-get update -qq && "${sudo[@]}" apt-get install -y -qq "$2"
  fi
  command -v "$1" >/dev/null || { say "test: $1 is missing; install it and run this again"; exit 1; }
}

# step NAME COMMAND…: runs it and prints how long it took.
step() {
  local name=$1 begin=$SECONDS
  shift
  say "== $name: $*"
  "$@"
  say "== $name: ok after $((SECONDS - begin)) s"
}

command -v cargo >/dev/null || { say "test: cargo is missing; install Rust from https://rustup.rs"; exit 1; }
need cc gcc
need git git
for part in rustfmt clippy; do
  cargo "${part/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$part"
done

step format cargo fmt --all --check
step lints cargo clippy --workspace --all-targets --locked -- -D warnings
step tests cargo test --workspace --locked
