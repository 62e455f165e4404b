#!/bin/sh
# page.sh FILE...: the files of the page of `hbmsim serve` as C, each a list of its lines. Called by
# the Makefile; needs sed and sort alone.
set -eu
echo '/* Made by cli/page.sh of cli/page: change those. */'
echo '#include "cli/serve_page.h"'
list=
for file; do
    name=$(basename "$file")
    id=$(echo "$name" | tr -c 'a-z0-9\n' _)
    case $name in
    *.html) type='text/html; charset=utf-8' ;;
    *.css) type='text/css; charset=utf-8' ;;
    *.js) type='text/javascript; charset=utf-8' ;;
    *) continue ;;
    esac
    echo "static const char *const file_$id[] = {"
    sed 's/\\/\\\\/g; s/"/\\"/g; s/?/\\?/g; s/^/    "/; s/$/\\n",/' "$file"
    echo '    0,'
    echo '};'
    list="$list    {\"$name\", \"$type\", file_$id},
"
done
echo 'const struct hb_page_file hb_page_files[] = {'
printf '%s' "$list"
echo '    {0, 0, 0},'
echo '};'
