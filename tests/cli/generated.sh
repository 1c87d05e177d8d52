#!/bin/sh
# tests/cli/generated.sh PROGRAM: whether what is generated is what the program would write now:
# results/measured/index.csv and spread.csv (predicted times within 0.1 %), and the numbers of the
# README's "How far to trust it" against a fresh `validate`.
#
# After a change that moves them: fsdpsim validate all --update results, and the README by hand.
set -eu
unset CDPATH
program=$(cd "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
root=$(cd "$(dirname -- "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C FSDPSIM_DATA="$root" FSDPSIM_DB="$work/x.db"
failed=0

mkdir -p "$work/results/measured"
"$program" validate all --update "$work/results" -q
cmp "$root/results/measured/spread.csv" "$work/results/measured/spread.csv" || failed=1
awk -F, 'NR == FNR { old[$1 "," $3] = $NF; left[$1 "," $3]; next }
    { delete left[$1 "," $3] }
    !(($1 "," $3) in old) { print "results/measured/index.csv lacks " $1; bad = 1; next }
    FNR > 1 { was = old[$1 "," $3]; d = $NF / was - 1
              if (d > 0.001 || d < -0.001) { print $1 ": predicted " was " s in index.csv, now " $NF " s"; bad = 1 } }
    END { for (key in left) { print "results/measured/index.csv has " key ", which no run gives"; bad = 1 }
          exit bad }' "$root/results/measured/index.csv" "$work/results/measured/index.csv" || failed=1

# The figures of the README, in the order of its sentences.
"$program" validate --json --no-db -q >"$work/json"
awk '/^  "(rows|in_scope)":/ { gsub(/[^0-9]/, "", $2); n[++k] = $2 }
     /^  "/ { part = "" }
     /^  "(step_time|memory|p5_to_p95)": \{/ { part = $1; gsub(/[":]/, "", part) }
     /^  "without_assumed"/ { exit }
     /^    "/ { key = $1; gsub(/[":]/, "", key); value = $2; sub(/,/, "", value); f[part, key] = value }
     END {
         printf "%d published training runs\n", n[1]
         printf "(%d of them, %.0f %%)\n", n[2], 100 * n[2] / n[1]
         printf "Step time (%d rows): median error %.1f %%, %.0f %% of the rows within 15 %%, a bias of %+.0f %%\n",
             f["step_time", "n"], 100 * f["step_time", "median_abs_err"],
             100 * f["step_time", "within_15pct"], 100 * f["step_time", "bias"]
         printf "(%d rows): median error %.1f %%, %.0f %% within 15 %%\n", f["memory", "n"],
             100 * f["memory", "median_abs_err"], 100 * f["memory", "within_15pct"]
         printf "%.0f %% of the measured step times lie between\n",
             100 * f["p5_to_p95", "inside"] / f["p5_to_p95", "n"]
     }' "$work/json" >"$work/said"
tr '\n' ' ' <"$root/README.md" | tr -s ' ' >"$work/readme"
while IFS= read -r sentence; do
    grep -qF -- "$sentence" "$work/readme" && continue
    echo "README.md does not say '$sentence'"
    failed=1
done <"$work/said"
[ $failed = 0 ] || echo "see results/README.md for how to bring them up to date"
exit $failed
