#!/bin/sh
# Confined: looks at the sibling run $1, writes where it must not, then works as the chaser $2 does.
[ -e "$1/manifest.json" ] && echo "saw the sibling" >took-over
echo x 2>/dev/null >"$1/written" || true
echo x 2>/dev/null >>../ledger.jsonl && echo "wrote the ledger" >took-over
echo x 2>/dev/null >../../written && echo "wrote outside" >took-over
exec "$2" agent 1
