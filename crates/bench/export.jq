# The tables of docs/benchmarks.md from the rows of `export`: jq -rs -f crates/bench/export.jq rows.json
#
# A line for each case and side; a cell has ours and, behind a stroke, that of the engine's own exporter.

def number:
  if . == null then "-"
  elif . >= 1000 then (round | tostring | [while(length > 0; .[:-3])[-3:]] | reverse | join(","))
  elif . >= 100 then (round | tostring)
  elif . >= 10 then (. * 10 | round / 10 | tostring)
  else (. * 100 | round / 100 | tostring) end;

def published: (.peer_name // "") | contains("-published");

def cell($metric):
  map(select(.metric == $metric and (published | not))) | first
  | if . == null then "-"
    elif .peer == null then .ours | number
    else "\(.ours | number) / \(.peer | number)" end;

"Commit `\(.[0].commit)`, \(.[0].cpu).\n",
"| case | CPU ns/item | of the exporter | M items/s of a core | B/item | RSS MiB |",
"| --- | --- | --- | --- | --- | --- |",
(map(select((.case | test("^(no-answer|outage)") | not)))
 | reduce .[] as $row ([]; if any(.[]; .[0].case == $row.case) then map(if .[0].case == $row.case then . + [$row] else . end) else . + [[$row]] end)
 | .[] | "| `\(.[0].case)` | \(cell("cpu")) | \(cell("export_cpu")) | \(cell("rate_of_core")) | \(cell("bytes")) | \(cell("rss")) |"),
"\n| case | metric | |",
"| --- | --- | --- |",
(.[] | select(.metric == "rate" or .metric == "of_bound" or .metric == "order_cost") | select(published | not)
 | "| `\(.case)` | `\(.metric)`, \(.unit) | \(.ours | number) |"),
"\n| case | metric | ours | published |",
"| --- | --- | --- | --- |",
(.[] | select(published) | "| `\(.case)` | `\(.metric)`, \(.unit) | \(.ours | number) | \(.peer | number), `\(.peer_name)` |"),
"\n| case | metric | ours | bound |",
"| --- | --- | --- | --- |",
(.[] | select(.case | test("^(no-answer|outage)")) | "| `\(.case)` | `\(.metric)`, \(.unit) | \(.ours | number) | \(.peer | number) |")
