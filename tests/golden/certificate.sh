# A certificate as lines: its plan, the floors of each node, and what the engine said of each run.
sed 's/.*"optimum"/"optimum"/; s/"configuration": .*"plan": /"plan": /; s/, "menus".*"nodes": /\n/
    s/, "refused": /\nrefused /; s/, "policies".*//; s/"runs": \[/\n/; s/{"\(mesh\|node\)"/\n&/g' |
    sed '/^ *$/d; /"parts"/ { s/"limit_bytes": [0-9]*, //; s/"fits": true, //; s/[{}"]//g; s/_bytes//g; s/,* *$//; }'
