# Size and shape of C sources, and what they include and call: see lint.sh. Reads .c and .h files
# of the source tree; prints `file:line: CHECK NAME: what is wrong` for each finding.
# It relies on the layout that clang-format gives: a function's braces stand in column 1.

BEGIN {
    ceiling["function"] = 60; ceiling["file"] = 800; ceiling["parameters"] = 6
    ceiling["line"] = 100; ceiling["nesting"] = 3
    split("base hw models sim/ir sim/graph sim/eager sim/engine sim/hlo solver plots cli lib", folders, " ")
    for (i in folders) rank[folders[i]] = i + 0
    # A foreign header and the one file that includes it; a call and the one that makes it.
    owner["glpk.h"] = "solver/ilp.c"; owner["yaml.h"] = "base/yaml.c"
    owner["microhttpd.h"] = "cli/serve_http.c"
    owner["dlfcn.h"] = "hw/dl.c"; owner["setjmp.h"] = "solver/ilp.c lib/call.c"
    owner["getenv"] = "cli/main.c"; owner["dlopen"] = "hw/dl.c"; owner["dlsym"] = "hw/dl.c"
    owner["setjmp"] = owner["longjmp"] = owner["setjmp.h"]
    split("strcpy strcat sprintf vsprintf strtok atoi atol atof sscanf gets alloca rand time " \
          "getenv setjmp longjmp dlopen dlsym system", calls, " ")
    for (i in calls) banned[calls[i]] = 1
    split("malloc calloc realloc free", calls, " ")
    for (i in calls) memory[calls[i]] = 1
    split("system time getenv dlsym dlopen", calls, " ") # in tests
    for (i in calls) test_may[calls[i]] = 1
}

function report(check, name, text) {
    printf "%s:%d: %s %s: %s\n", FILENAME, FNR, check, name, text
}

function over(check, name, value) {
    if (value > ceiling[check])
        report(check, name, value " (ceiling " ceiling[check] ")")
}

function folder(path,    parts, n) {
    n = split(path, parts, "/")
    if (parts[1] == "sim" && n > 2) return parts[1] "/" parts[2]
    return n > 1 ? parts[1] : ""
}

# The line without comments and with emptied strings and characters.
function strip(s,    out, c, i, n, quote) {
    out = ""; quote = ""; n = length(s)
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        if (comment) {
            if (c == "*" && substr(s, i + 1, 1) == "/") { comment = 0; i++ }
        } else if (quote != "") {
            if (c == "\\") i++
            else if (c == quote) { quote = ""; out = out c }
        } else if (c == "/" && substr(s, i + 1, 1) == "*") { comment = 1; i++ }
        else if (c == "/" && substr(s, i + 1, 1) == "/") break
        else { if (c == "\"" || c == "'") quote = c; out = out c }
    }
    return out
}

function owns(name) {
    return index(" " owner[name] " ", " " FILENAME " ") > 0
}

function check_include(line,    name, mine, its) {
    if (match(line, /[<"][^>"]*[>"]/) == 0) return
    name = substr(line, RSTART + 1, RLENGTH - 2)
    if (name in owner && !owns(name) && source)
        report("owner", name, "only " owner[name] " includes it")
    if (name ~ /^cairo/ && FILENAME != "plots/draw.c" && source)
        report("owner", name, "only plots/draw.c includes it")
    if (line !~ /"/) return
    mine = folder(FILENAME); its = folder(name)
    if (its == "") report("include", name, "is not written from the root")
    if (source && its == "tests") report("include", name, "is a test's")
    if (source && its in rank && mine in rank && rank[its] > rank[mine])
        report("include", name, mine " must not include " its)
}

function check_call(word) {
    if (word in banned && !owns(word) && (source || !(word in test_may)))
        report("banned", word, "is not to be called")
    if (word in memory && source && mine_folder != "base" && !(word == "free" && mine_folder == "lib"))
        report("banned", word, "memory comes from an arena; only base/ calls it")
}

# A variable that outlives its function and may change: several threads run the library.
function check_global(line,    name) {
    if (!source || line !~ /^ *static / || line ~ /const/ || line !~ /[;=]/) return
    if (line ~ /\(/ && line !~ /\(\*/) return
    sub(/ *[=;[].*/, "", line)
    name = line
    sub(/.*[ *]/, "", name)
    report("global", name, "is shared by threads and may change")
}

function check_calls(line,    before) {
    while (match(line, /[A-Za-z_][A-Za-z_0-9]*\(/)) {
        before = RSTART > 1 ? substr(line, RSTART - 1, 1) : ""
        if (before != "." && before != ">")
            check_call(substr(line, RSTART, RLENGTH - 1))
        line = substr(line, RSTART + RLENGTH)
    }
}

# Parameters between the outermost parentheses that follow the name of a function.
function count_parameters(text,    i, c, depth, count, any) {
    i = index(text, "("); count = 1; any = 0
    for (; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "(") { depth++; continue }
        if (c == ")" && --depth == 0) break
        if (depth == 1 && c == ",") count++
        if (c !~ /[ (]/) any = 1
    }
    return any ? count : 0
}

function function_name(text) {
    sub(/^__attribute__\(\([^)]*\)\)\) /, "", text)
    return match(text, /[A-Za-z_][A-Za-z_0-9]*\(/) ? substr(text, RSTART, RLENGTH - 1) : ""
}

function check_head(text,    name) {
    if (text ~ /^(typedef|enum|_Static_assert)/ || text !~ /\(/ || text ~ /=/) return
    name = function_name(text)
    if (name != "") over("parameters", name, count_parameters(substr(text, index(text, name "("))))
}

# How deep a line with a control word stands, by its indent: 1 is directly in the function.
function check_nesting(line,    depth) {
    if (line !~ /^ +(if|for|while|switch|do|else)( |$)/) return
    match(line, /^ +/)
    depth = RLENGTH / 4
    if (depth > deepest) deepest = depth
}

FNR == 1 {
    if (last_file != "") end_file()
    last_file = FILENAME; comment = 0; head = ""; body = 0; macro = 0
    mine_folder = folder(FILENAME); source = mine_folder in rank
}

{
    last_line = FNR
    columns = $0
    gsub(/[\200-\277]/, "", columns) # the later bytes of a character
    over("line", "columns", length(columns))
    if ($0 ~ /\t/) report("line", "tab", "a tab")
    if ($0 ~ / $/) report("line", "blank", "blanks at the end")
    if (!comment && $0 ~ /^#include/) { check_include($0); next }
    line = strip($0)
    if (macro || line ~ /^#/) { macro = line ~ /\\$/; check_calls(line); next }
    check_calls(line)
    check_global(line)
    if (body) {
        if (line ~ /^}/) {
            over("function", name, FNR - start + 1)
            over("nesting", name, deepest)
            body = 0
        } else check_nesting(line)
        next
    }
    if (line ~ /^\{/ && head ~ /\)[ ]*$/) {
        body = 1; start = FNR; deepest = 0; name = function_name(head)
        check_head(head)
        head = ""
        next
    }
    if (line ~ /^[A-Za-z_]/ && head ~ /[;}][ ]*$/) head = ""
    if (line ~ /^[A-Za-z_]/ || head != "") head = head (head == "" ? "" : " ") line
    gsub(/  +/, " ", head)
    if (head ~ /;[ ]*$/ && head !~ /\{/) { check_head(head); head = "" }
    if (head ~ /\}[^()]*;[ ]*$/) head = ""
}

function end_file() {
    if (last_line > ceiling["file"])
        printf "%s:%d: file lines: %d (ceiling %d)\n", last_file, last_line, last_line,
            ceiling["file"]
}

END { if (last_file != "") end_file() }
