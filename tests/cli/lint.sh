# tests/lint/lint.sh finds what it is for: a small tree with one fault at a time.
. tests/tap.sh

tree=$work/tree
plant() {
    rm -rf "$tree"
    mkdir -p "$tree/tests/lint" "$tree/base" "$tree/hw" "$tree/sim/ir" "$tree/sim/engine" \
        "$tree/sim/hlo" "$tree/plots" "$tree/examples"
    cp tests/lint/lint.sh tests/lint/shape.awk tests/lint/family.sh "$tree/tests/lint"
    echo 'tests 1' >"$tree/tests/lint/ceilings"
    cp Makefile "$tree"
    cp tests/tap.sh "$tree/tests"
    cp examples/setup.sh "$tree/examples"
    echo '# none' >"$tree/tests/lint/waivers"
    cat >"$tree/base/good.h" <<'C'
/* A header that is fine: 'quotes', "strings" and calls like malloc(3) in comments count not. */
struct good {
    int (*call)(int a, int b, int c, int d, int e, int f);
};
int hb_good(int a, int b, int c, int d, int e, int f);
C
    cat >"$tree/sim/engine/good.c" <<'C'
#include "base/good.h"
#include "sim/ir/good.h"
static const char text[] = "strcpy(a, b) /* no comment";
int hb_good(int a, int b, int c, int d, int e, int f)
{
    for (;;) {
        while (a) {
            if (b && text[0] &&
                    c)
                return d;
            else if (e)
                return f;
        }
    }
}
C
    : >"$tree/sim/ir/good.h"
}
# plant_file PATH TEXT...: one more file of those lines.
plant_file() {
    plant
    path=$1
    shift
    printf '%s\n' "$@" >"$tree/$path"
}
lint() {
    run sh "$tree/tests/lint/lint.sh" shape
}
finds() {
    lint
    ok "finds: $1" test "$status" = 1
    out_has "$1"
}
lines() {
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) print "    a++;" }'
}

plant
lint
ok 'a clean tree passes' test "$status" = 0
ok 'with no finding' sh -c '! grep -q "^not ok" "$1"' sh "$work/out"

plant_file base/bad.c '#include "hw/device.h"'
finds 'base/bad.c:1: include hw/device.h: base must not include hw'
plant_file sim/ir/bad.c '/* tied */' 'int a = tied, b = tied;'
finds 'sim/ir and sim/graph: 2 tests (ceiling 1)'
plant_file sim/ir/bad.c '#include "sim/hlo/lex.h"'
finds 'sim/ir must not include sim/hlo'
plant_file hw/bad.c '#include "device.h"'
finds 'device.h: is not written from the root'
plant_file hw/bad.c '#include <glpk.h>'
finds 'owner glpk.h: only solver/ilp.c includes it'
plant_file plots/bad.c '#include <cairo/cairo-svg.h>'
finds 'only plots/draw.c includes it'
plant_file hw/bad.c '#include <yaml.h>'
finds 'only base/yaml.c includes it'
plant_file hw/bad.c 'void f(void)' '{' '    dlopen("x", 1);' '}'
finds 'banned dlopen'
plant_file hw/bad.c 'void f(char *a)' '{' '    strcpy(a, "b");' '}'
finds 'hw/bad.c:3: banned strcpy: is not to be called'
plant_file hw/bad.c 'void f(char *a)' '{' '    /* a' '       comment */ free(a);' '}'
finds 'hw/bad.c:4: banned free: memory comes from an arena'
plant_file base/fine.c 'void f(char *a)' '{' '    free(a);' '}'
lint
ok 'base may free' test "$status" = 0
plant_file hw/bad.c 'int f(void)' '{' "$(lines 59)" '}'
finds 'function f: 61 (ceiling 60)'
plant_file hw/fine.c 'int f(void)' '{' "$(lines 58)" '}'
lint
ok '60 lines are fine' test "$status" = 0
plant_file hw/bad.c "$(awk 'BEGIN { for (i = 0; i < 801; i++) print "int a;" }')"
finds 'file lines: 801 (ceiling 800)'
plant_file hw/bad.c 'static struct x *f(int a, int (*b)(int, int), int c, int d,' '    int e, int f,' \
    '    int g)' '{' '}'
finds 'parameters f: 7 (ceiling 6)'
plant_file hw/bad.h 'int hb_x(int a, int b, int c, int d, int e, int f, int g);'
finds 'parameters hb_x: 7 (ceiling 6)'
plant_file hw/bad.c "int a; /* $(awk 'BEGIN { while (i++ < 100) printf "x" }') */"
finds 'line columns: 113 (ceiling 100)'
plant_file hw/bad.c 'int f(void)' '{' '    if (a)' '        for (;;)' '            do {' \
    '                if (b)' '                    return 1;' '            } while (c);' '}'
finds 'nesting f: 4 (ceiling 3)'
plant_file hw/bad.h 'int hb_f(struct later *x, size_t y);'
finds 'hw/bad.h:1'
printf '%s\n' 'if then' >"$tree/examples/bad.sh"
finds 'examples/bad.sh'
plant
twice=$(awk 'BEGIN { while (i++ < 101) printf "x" }')
printf '%s\n' "$twice" '' "$twice" >"$tree/HACKING.md"
finds "HACKING.md:3: $twice"

plant_file hw/bad.c 'void f(char *a)' '{' '    free(a);' '}'
echo 'hw/bad.c banned free the library gave it to us' >>"$tree/tests/lint/waivers"
lint
ok 'a waiver waives' test "$status" = 0
plant
echo 'hw/bad.c banned free the library gave it to us' >>"$tree/tests/lint/waivers"
finds 'no finding needs: hw/bad.c banned free'
plant_file hw/bad.c 'void f(char *a)' '{' '    free(a);' '}'
echo 'hw/bad.c banned free' >>"$tree/tests/lint/waivers"
finds 'a waiver wants a reason'
finish
