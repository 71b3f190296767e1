#!/usr/bin/env bash
# Builds codemirror.js, LICENSE and SHA256SUMS from the packages that package-lock.json pins, with npm and Node.js.
# `build.sh --check` says whether they would be the same bytes.
#
# For newer packages, change their versions in package.json, and run
#     npm install --package-lock-only && ./build.sh
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp .npmrc package.json package-lock.json entry.js style-mod.js "$work"

bundle() {
    (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent && node_modules/.bin/esbuild entry.js \
        --bundle --format=esm --minify --target=es2022 --legal-comments=none --alias:style-mod=./style-mod.js \
        '--banner:js=/*! CodeMirror 6 and Lezer, MIT: the licences are in the LICENSE file of web/vendor/codemirror. */' \
        --metafile=parts.json --outfile=codemirror.js --log-level=warning)
}

# The licence of each package of which something is in the bundle.
licences() {
    local package
    node -p 'const { inputs } = require(process.argv[1]).outputs["codemirror.js"];
        const names = Object.entries(inputs).map(([path, { bytesInOutput }]) =>
            bytesInOutput > 0 ? /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] : undefined);
        [...new Set(names.filter((name) => name !== undefined))].sort().join("\n")' "$work/parts.json" |
        while read -r package; do
            printf '%s %s\n\n' "$package" "$(node -p 'require(process.argv[1]).version' "$work/node_modules/$package/package.json")"
            cat "$work/node_modules/$package/LICENSE"
            printf '\n'
        done
}

bundle
licences >"$work/LICENSE"
(cd "$work" && sha256sum codemirror.js LICENSE >SHA256SUMS)
if [ "${1-}" = --check ]; then
    cmp "$work/SHA256SUMS" SHA256SUMS && sha256sum --check --quiet SHA256SUMS
    exit
fi
cp "$work/codemirror.js" "$work/LICENSE" "$work/SHA256SUMS" .
printf 'codemirror.js: %s bytes, %s compressed\n' "$(wc -c <codemirror.js)" "$(gzip -9c codemirror.js | wc -c)"
