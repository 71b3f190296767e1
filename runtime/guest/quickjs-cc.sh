#!/bin/sh
# The C compiler for QuickJS. Its build copies the sources before it compiles them; the copy gets our edits.
set -eu

edits=$(dirname "$0")/quickjs.sed
edits_expected=13

for argument; do
    case $argument in
    */quickjs.c)
        grep -q '/\* edit \*/' "$argument" || sed -i -f "$edits" "$argument"
        edits_found=$(grep -c '/\* edit \*/' "$argument")
        if [ "$edits_found" -ne "$edits_expected" ]; then
            echo "quickjs-cc.sh: $edits_found of $edits_expected edits found their place in $argument" >&2
            exit 1
        fi
        ;;
    esac
done
exec "$GUEST_CLANG" "$@"
