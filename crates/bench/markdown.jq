# The tables of docs/benchmarks.md from the rows of `quantile-core`: jq -rs -f crates/bench/markdown.jq rows.json
#
# A line for each case, a column for ours and each peer. A cell is the median and in brackets the best run, or several metrics
# of a case one after the other.

def number:
  if . == null then "-"
  elif . >= 1000 then (round | tostring | [while(length > 0; .[:-3])[-3:]] | reverse | join(","))
  elif . >= 100 then (round | tostring)
  elif . >= 10 then (. * 10 | round / 10 | tostring)
  elif . >= 1 then (. * 100 | round / 100 | tostring)
  else (. * 1000 | round / 1000 | tostring) end;

# The numbers of one side in rows of one case.
def cell($side; $metrics):
  . as $rows
  | [$metrics[] as $metric | $rows[] | select(.metric == $metric)
     | if $side == null then {metric, value: .ours} else select(.peer_name == $side) | {metric, value: .peer} end]
  | unique_by(.metric) | map({key: .metric, value: .value}) | from_entries as $of
  | [$metrics[] | $of[.] // empty]
  | if length == 0 then "-"
    elif ($metrics | length) == 2 and ($metrics[1] | startswith("best_")) then "\(.[0] | number) (\(.[1] | number))"
    else map(number) | join(", ") end;

# A table of the cases that match.
def table($cases; $metrics):
  map(select((.case | test($cases)) and (.metric as $metric | $metrics | any(. == $metric))))
  | if length == 0 then empty else
      (reduce .[].peer_name as $name ([]; if $name == null or any(.[]; . == $name) then . else . + [$name] end)) as $peers
      | (reduce .[].case as $case ([]; if any(.[]; . == $case) then . else . + [$case] end)) as $cases
      | . as $rows
      | "\n\(if ($metrics[1] // "") | startswith("best_") then "Median (best)" else $metrics | map("`\(.)`") | join(", ") end), \($rows[0].unit):\n",
        "| case | ours |" + ($peers | map(" `\(.)` |") | join("")),
        "| --- |" + ([range($peers | length + 1)] | map(" --- |") | join("")),
        ($cases[] as $case | ($rows | map(select(.case == $case))) as $of
         | "| `\($case)` | \($of | cell(null; $metrics)) |"
           + ($peers | map(. as $peer | " \($of | cell($peer; $metrics)) |") | join("")))
    end;

# Cells of rank errors in which ours is larger than so many times that of DataSketches.
def above($times):
  map(select((.metric | startswith("rms_")) and .peer_name == "datasketches-0.6.0" and .ratio != null and (.case | endswith("/all") | not)))
  | "\n`rms` of ours divided by that of `datasketches`: \(length) cells, median \(map(.ratio) | sort | .[length / 2 | floor] | number), more than \($times) in \(map(select(.ratio > $times)) | length):\n",
    (map(select(.ratio > $times))[] | "* `\(.case)` `\(.metric)`: \(.ours | number), \(.peer | number), **\(.ratio | number)**");

"Commit `\(.[0].commit)`, \(.[0].cpu).",
"\n### Insertion",
table("^insert/(uniform|sorted|.*/262144$)"; ["rate", "best_rate"]),
"\n### Merging, bytes, queries",
table("^(merge|to-bytes|from-bytes|query)/"; ["time", "best_time"]),
"\n### Exact quantiles",
table("^exact/(observe|sort|select|to-bytes|from-bytes)/"; ["time", "best_time"]),
table("^exact/bisect/"; ["time", "best_time"]),
"\n### Bytes and memory",
table("^bytes/"; ["image"]),
table("^memory/"; ["resident"]),
table("^series/"; ["resident"]),
"\n### Rank errors",
table("^rank-error/.*/all$"; ["rms_p50", "rms_p99", "rms_p999"]),
table("^rank-error/.*/all$"; ["max_p50", "max_p99", "max_p999"]),
table("^rank-error/k400/[^cfa]"; ["rms_p50", "rms_p99", "rms_p999"]),
above(1.25)
