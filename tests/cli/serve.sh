# hbmsim serve: the protocol, spoken by serve.py: who may ask, what is refused, works and their
# end, many requests without a leak. The page itself is tried by tests/unit/test_serve_browser.c.
. tests/tap.sh

expect 0 hbmsim serve --help
out_has 'usage: hbmsim serve [OPTIONS] [MODEL.yaml]'
expect 2 hbmsim serve "$work/none.yaml"
err_has 'none.yaml'
expect 2 hbmsim serve --port 70000
expect 2 hbmsim serve - --set 'batch=['

if hbmsim serve --port 0 --set 'model.preset' 2>&1 | grep -q 'built without'; then
    skip 'the protocol' 'libmicrohttpd is not installed'
elif ! command -v python3 >/dev/null 2>&1; then
    skip 'the protocol' 'python3 is not installed'
else
    run python3 tests/cli/serve.py "$HBMSIM" "$work"
    show "$work/err"
    while read -r verdict name; do
        tap "$(echo "$verdict" | tr _ ' ')" "$name"
    done <"$work/out"
    ok 'serve.py ends well' test "$status" = 0
    if python3 -c 'import jsonschema, yaml; jsonschema.Draft202012Validator' 2>/dev/null; then
        hbmsim help model --json-schema >"$work/model.schema"
        hbmsim help json --json-schema >"$work/results.schema"
        python3 tests/cli/schema.py "$work/model.schema" "$work/results.schema" <"$work/kept" >"$work/said"
        grep -A3 '^not ok' "$work/said" | sed 's/^/# /'
        ok 'what the page gets meets the schemas of results' test "$(grep -c '^ok' "$work/said")" = 5
    else
        skip 'the schemas of results' 'python3 with jsonschema and yaml'
    fi
fi
finish
