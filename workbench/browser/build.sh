#!/bin/sh
# Builds the workbench for browsers: `build.sh` writes workbench/browser.wasm and browser.sums, `build.sh --check` says
# whether it would be the same bytes. `build.sh --check-changed` does that unless the very same files passed it before
# with this target directory.
#
# It takes the Debian packages of `runtime/guest/packages`, and `runtime/guest/build.sh --packages` says which are missing.
set -eu

crate=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$crate/../.." && pwd)
target=${CARGO_TARGET_DIR:-$crate/target}
triple=wasm32-wasip1
# Parsers descend into a text as deep as it is nested; the engine of the browser has a bound of its own.
stack_bytes=8388608
built=$target/$triple/release/airlock_workbench_browser

fail() {
    echo "build.sh: $1" >&2
    exit 1
}

compile() {
    for tool in /usr/bin/cargo /usr/bin/rustc wasm-ld-19 wasm-opt; do
        command -v "$tool" >/dev/null 2>&1 || fail "$tool is missing; run runtime/guest/build.sh --packages"
    done
    rust_flags="-Zunstable-options -Clinker-flavor=wasm-lld -Clink-self-contained=no -L/usr/lib/wasm32-wasi"
    rust_flags="$rust_flags -Clink-arg=-zstack-size=$stack_bytes -Clink-arg=--stack-first"
    rust_flags="$rust_flags --remap-path-prefix=$root=. --remap-path-prefix=$target=. --remap-path-prefix=$HOME=."
    # Where crates are unpacked differs between machines, and the later option wins.
    for crates in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
        rust_flags="$rust_flags --remap-path-prefix=$crates=crates"
    done
    (
        cd "$crate"
        export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target"
        export CARGO_TARGET_WASM32_WASIP1_LINKER=wasm-ld-19 CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="$rust_flags"
        unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
        /usr/bin/cargo build --quiet --release --locked --target "$triple" -Zbuild-std=std,panic_abort
    )
    wasm-opt -Os --enable-bulk-memory --enable-mutable-globals --enable-sign-ext --enable-nontrapping-float-to-int \
        --enable-reference-types --enable-multivalue --strip-debug --strip-producers "$built.wasm" -o "$target/browser.wasm"
}

# What the compiler has read, as it says itself, and what decides how.
sources() {
    for file in $(sed -n '/\.wasm:/s/^[^:]*://p' "$built.d"); do
        realpath --relative-to="$root" "$file"
    done | grep -v '^\.\./' | LC_ALL=C sort -u
    for name in Cargo.toml Cargo.lock build.sh runtime/Cargo.toml types/Cargo.toml; do echo "workbench/browser/$name"; done
    echo runtime/guest/packages
}

# What the tests compare, so that nobody forgets to build: the module, and each file that it is built from.
write_sums() {
    (cd "$root" && sha256sum workbench/browser.wasm && sources | xargs sha256sum) | sed 's/  / /'
}

check() {
    missing=$("$root/runtime/guest/build.sh" --packages)
    [ -z "$missing" ] || fail "browser.wasm was built with other packages; install: $(echo $missing)"
    compile
    cmp "$target/browser.wasm" "$crate/../browser.wasm" || fail "browser.wasm is not what its sources give; run build.sh and commit"
    write_sums >"$target/browser.checked"
    cmp "$target/browser.checked" "$crate/../browser.sums" || fail "a file has changed since browser.sums was written; run build.sh and commit"
    echo "browser.wasm is what its sources give"
}

case "${1:-}" in
--check) check ;;
--check-changed)
    if [ -e "$target/browser.checked" ] && (cd "$root" && sha256sum --check --quiet --strict "$target/browser.checked") >/dev/null 2>&1; then
        echo "browser.wasm is what its sources give, as was checked before"
    else
        check
    fi
    ;;
"")
    compile
    cp "$target/browser.wasm" "$crate/../browser.wasm"
    write_sums >"$crate/../browser.sums"
    ;;
*) fail "unknown argument $1; expected --check, --check-changed or nothing" ;;
esac
