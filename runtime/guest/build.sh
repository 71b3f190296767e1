#!/bin/sh
# Builds the guest: `build.sh` writes runtime/guest.wasm, its machine code for x86-64 and guest.sums, `build.sh --check`
# says whether it would be the same bytes. `build.sh --check-changed` does that unless the very same files passed it
# before with this target directory: a commit can change guest.wasm and guest.sums together, but not what was built here.
# `build.sh --packages` says which packages are missing. `build.sh --unmetered FILE` writes a guest that charges no fuel,
# to measure what charging costs.
#
# Two toolchains do. Debian's packages, which `packages` names with their versions. Or rustup with rust-src, and WASI_SDK
# naming a wasi-sdk folder, and binaryen. The committed bytes are those of the Debian one, in these versions; another
# toolchain gives another guest that does the same.
set -eu

guest=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$guest/target}
work=$target/guest
triple=wasm32-wasip1
c_stack_bytes=262144
built="guest.wasm guest-x86_64.bin counting-guest-x86_64.bin"

fail() {
    echo "build.sh: $1" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null 2>&1 || fail "$1 is missing; $2"
}

# Sets cargo, rustc, clang, ar, linker, include and lib for one of the two toolchains.
choose_toolchain() {
    need wasm-opt "install binaryen"
    if [ -n "${WASI_SDK:-}" ]; then
        need rustup "install it, or unset WASI_SDK to use Debian's packages"
        cargo=$(rustup which cargo) rustc=$(rustup which rustc)
        clang=$WASI_SDK/bin/clang ar=$WASI_SDK/bin/llvm-ar linker=$WASI_SDK/bin/wasm-ld
        sysroot=$WASI_SDK/share/wasi-sysroot
        include=$sysroot/include/$triple lib=$sysroot/lib/$triple
        sources="run: rustup component add rust-src"
    else
        cargo=/usr/bin/cargo rustc=/usr/bin/rustc clang=clang-19 ar=llvm-ar-19 linker=wasm-ld-19
        include=/usr/include/wasm32-wasi lib=/usr/lib/wasm32-wasi
        sources="install rust-web-src, or set WASI_SDK to use rustup"
    fi
    need "$cargo" "install cargo-web"
    need "$rustc" "install rustc-web"
    need "$clang" "install clang-19"
    need "$ar" "install llvm-19"
    need "$linker" "install lld-19"
    [ -e "$include/stdio.h" ] && [ -e "$lib/libc.a" ] || fail "the C library for WASI is missing; install wasi-libc"
    [ -e "$("$rustc" --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ] ||
        fail "the sources of Rust's standard library are missing; $sources"
}

compile() {
    # Debian keeps the C library under the triple's old name.
    mkdir -p "$work/sysroot/include" "$work/sysroot/lib"
    ln -sfn "$include" "$work/sysroot/include/$triple"
    ln -sfn "$lib" "$work/sysroot/lib/$triple"
    # WebAssembly 1.0 and little more. Above all no bulk memory: the host ends a call that overstays by making its
    # memory inaccessible, which has to fault in the guest's own instructions.
    c_flags="--sysroot=$work/sysroot -O3 -ffile-prefix-map=$target=."
    # Named in the flags, so that Cargo compiles QuickJS again when the edits change.
    c_flags="$c_flags -DGUEST_EDITS=$(cat "$guest"/*.sed "$guest"/*.c | cksum | cut -d' ' -f1)"
    c_flags="$c_flags -mcpu=mvp -mmutable-globals -msign-ext -mnontrapping-fptoint"
    rust_flags="-Ctarget-cpu=mvp -Ctarget-feature=+mutable-globals,+sign-ext,+nontrapping-fptoint"
    rust_flags="$rust_flags -Zunstable-options -Clinker-flavor=wasm-lld -Clink-self-contained=no -L$lib"
    rust_flags="$rust_flags -Clink-arg=-zstack-size=$c_stack_bytes -Clink-arg=--stack-first"
    rust_flags="$rust_flags -Clink-arg=--export=__stack_pointer"
    rust_flags="$rust_flags --remap-path-prefix=$guest=. --remap-path-prefix=$target=. --remap-path-prefix=$HOME=."
    (
        cd "$guest"
        export RUSTC="$rustc" RUSTC_BOOTSTRAP=1 RQUICKJS_SYS_NO_WASI_SDK=1 CARGO_TARGET_DIR="$target"
        export CC_wasm32_wasip1="$guest/quickjs-cc.sh" GUEST_CLANG="$clang" AR_wasm32_wasip1="$ar" CFLAGS_wasm32_wasip1="$c_flags"
        export BINDGEN_EXTRA_CLANG_ARGS_wasm32_wasip1="--sysroot=$work/sysroot"
        export CARGO_TARGET_WASM32_WASIP1_LINKER="$linker" CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS="$rust_flags"
        unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
        "$cargo" build --quiet --release --locked --target "$triple" -Zbuild-std=std,panic_abort
    )
}

# The tool runs on this machine, with whichever cargo is first on the path. It is built as `check` builds the tests, where
# they are: with a test, as tests turn on features. So one build of what they share serves both.
finish() {
    root=$guest/../..
    tool_target=${CARGO_TARGET_DIR:-$root/target}
    (
        cd "$root"
        CARGO_TARGET_DIR="$tool_target" cargo build --quiet --locked --workspace --exclude airlock-fuzz --features kafka \
            --bin airlock-guest-tool --test guest_tool
    )
    tool=$tool_target/debug/airlock-guest-tool
    "$tool" stub "$target/$triple/release/airlock_guest.wasm" "$work/stubbed.wasm"
    "$tool" snapshot "$work/stubbed.wasm" "$work/snapshot.wasm"
    wasm-opt -O3 -mvp --enable-mutable-globals --enable-sign-ext --enable-nontrapping-float-to-int \
        --strip-debug --strip-producers "$work/snapshot.wasm" -o "$work/optimized.wasm"
    "$tool" meter "$work/optimized.wasm" "$work/guest.wasm"
    "$tool" check "$work/guest.wasm"
    "$tool" compile "$work/guest.wasm" "$work/guest-x86_64.bin" "$work/counting-guest-x86_64.bin"
}

# What the tests compare, so that nobody forgets to build: the module, and everything that it is built from.
write_sums() {
    cd "$guest/.."
    echo "$(sha256sum <guest.wasm | cut -d' ' -f1) guest.wasm"
    echo "$(find guest src/contract/wire.rs src/contract/guest_limits.rs -type f ! -path '*/target/*' ! -name '*.md' | LC_ALL=C sort |
        xargs cat | sha256sum | cut -d' ' -f1) sources"
}

# The packages that are not installed in the version whose bytes are committed, as apt-get takes them.
missing_packages() {
    while IFS== read -r name version; do
        installed=$(dpkg-query -W -f '${Version}' "$name" 2>/dev/null) || true
        [ "$installed" = "$version" ] || echo "$name=$version"
    done <"$guest/packages"
}

build() {
    choose_toolchain
    compile
    finish
}

check() {
    missing=$(missing_packages)
    [ -z "$missing" ] || fail "guest.wasm was built with other packages; install: $(echo $missing)"
    build
    for file in $built; do
        cmp "$work/$file" "$guest/../$file" || fail "$file is not what its sources give; run build.sh and commit"
    done
    write_sums >"$target/checked"
    cmp "$target/checked" "$guest/../guest.sums" || fail "a file has changed since guest.sums was written; run build.sh and commit"
    echo "guest.wasm and its machine code are what their sources give"
}

case "${1:-}" in
--check) check ;;
--check-changed)
    if [ "$(write_sums)" = "$(cat "$target/checked" 2>/dev/null)" ]; then
        echo "guest.wasm is what its sources give, as was checked before"
    else
        check
    fi
    ;;
--packages) missing_packages ;;
--unmetered)
    build
    cp "$work/optimized.wasm" "${2:?names no file}"
    ;;
"")
    build
    for file in $built; do cp "$work/$file" "$guest/../$file"; done
    write_sums >"$guest/../guest.sums"
    ;;
*) fail "unknown argument $1; expected --check, --check-changed, --packages, --unmetered FILE or nothing" ;;
esac
