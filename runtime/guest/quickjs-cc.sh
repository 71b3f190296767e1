#!/bin/sh
# The C compiler for QuickJS. Its build copies the sources before compiling them; this script patches the copy with
# `quickjs.sed` and `positions.sed`, and appends our C files.
set -eu

ours=$(dirname "$0")
edits_expected=131

for argument; do
    case $argument in
    */quickjs.c)
        if ! grep -q '/\* edit \*/' "$argument"; then
            sed -i -f "$ours/quickjs.sed" -f "$ours/positions.sed" "$argument"
            cat "$ours/location.c" "$ours/positions.c" "$ours/steps.c" "$ours/shapes.c" "$ours/fast_json.c" >>"$argument"
        fi
        edits_found=$(grep -c '/\* edit \*/' "$argument")
        if [ "$edits_found" -ne "$edits_expected" ]; then
            echo "quickjs-cc.sh: $edits_found of $edits_expected edits were applied to $argument" >&2
            exit 1
        fi
        ;;
    esac
done
exec "$GUEST_CLANG" "$@"
