cd /tmp/gg
P=/work/bench/r/bin/python
$P /work/bench/gpu/draw.py cuda 26112618 hc 48 - > c.jsonl 2> c.err
$P /work/bench/gpu/draw.py rocm 26112619 hr 44 - > r.jsonl 2> r.err
awk 'NR%2==1' c.jsonl > ca.jsonl; awk 'NR%2==0' c.jsonl > cb.jsonl
awk 'NR%2==1' r.jsonl > ra.jsonl; awk 'NR%2==0' r.jsonl > rb.jsonl
sh /tmp/gg/go.sh ca ra cb rb > go.log 2>&1
