#!/usr/bin/env bash
# Runs a fuzz target with cargo alone, on the stable toolchain.
set -euo pipefail
cd "$(dirname "$0")"
target=${1:?which target: function_text, call_input, module, reply, body or packet}
seconds=${2:-60}
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# The module of a median set of functions has 29 kB.
case $target in module) bytes_max=65536 ;; *) bytes_max=4096 ;; esac
mkdir -p "corpus/$target" "artifacts/$target" "seeds/$target"
# With `--target`, so that build scripts are built without the flags.
host=$(rustc -vV | sed -n 's/^host: //p')
# What a release leaves out.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none
RUSTFLAGS=$flags cargo run --release --package airlock-fuzz --target "$host" --bin "$target" -- \
    "corpus/$target" "seeds/$target" -max_total_time="$seconds" -artifact_prefix="artifacts/$target/" \
    -max_len="$bytes_max" -timeout=30 -rss_limit_mb=4096
