//! Quantiles of known numbers, from syslog lines to a sink, against sorting and counting.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use catchment_tests::{Caught, Engine, HEAD, Report, Scene, Sink};
use serde_json::Value;

const PIPELINE: &str = r#"groups:
  site:
    pipelines:
      edge:
        nodes:
          syslog:
            type: urn:catchment:receiver:syslog
            config: {tcp: {listening_addr: "127.0.0.1:@syslog@"}, structured_data: flat}
          quantile:
            type: urn:catchment:processor:quantile
            config:
              method: METHOD
              quantiles: [0, 0.25, 0.5, 0.9, 0.999, 1]
              statistics: [count, sum, min, max]
              window: WINDOW
              idle_flush: 1s
              measures:
                - name: size
                  unit: By
                  value_from: attribute:syslog.structured_data.m@1.v
                  text: number
                  group_by: [syslog.structured_data.m@1.g]
          otap:
            type: exporter:otap
            config: {grpc_endpoint: "http://127.0.0.1:@sink@"}
        connections:
          - {from: syslog, to: quantile}
          - {from: quantile, to: otap}
"#;

/// The quantiles of the configuration in thousandths, with the text they are labelled by.
const QUANTILES: &[(usize, &str)] = &[(0, "0"), (250, "0.25"), (500, "0.5"), (900, "0.9"), (999, "0.999"), (1000, "1")];
/// Points of one window and series: quantiles and statistics.
const POINTS: usize = 10;
const GROUP: &str = "syslog.structured_data.m@1.g";

/// Halves, so that sums are exact.
fn values(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((state >> 40) as u32) / 2.0 - 1_000_000.0
    };
    (0..count).map(next).collect()
}

fn line(time: &str, group: &str, value: &str) -> String {
    format!("<13>1 {time} host app - - [m@1 g=\"{group}\" v=\"{value}\"] x\n")
}

/// Sends the lines over one connection, waits for `windows` at the sink and checks the books.
fn run(method: &str, window: &str, lines: &[String], windows: usize) -> (Report, Caught) {
    let scene = Scene::new();
    let mut sink = Sink::start(&scene);
    let yaml = format!("{HEAD}{PIPELINE}").replace("METHOD", method).replace("WINDOW", window);
    let engine = Engine::start(&scene, &yaml, &[("sink", sink.otap())]);
    let mut stream = TcpStream::connect(engine.address("syslog")).expect("a connection");
    stream.write_all(lines.concat().as_bytes()).expect("the lines are taken");
    drop(stream);
    sink.wait_for(windows * POINTS);
    let stopped = engine.stop();
    let caught = sink.stop();
    let report = stopped.expect_clean().clone();
    let sent = lines.len() as u64;
    assert_eq!(report.node("edge/syslog").received, Some(sent));
    assert_eq!(report.node("edge/syslog").note("acknowledged"), sent);
    let quantile = report.node("edge/quantile");
    assert_eq!(quantile.received, Some(sent));
    assert_eq!((quantile.note("points sent"), caught.points), ((windows * POINTS) as u64, (windows * POINTS) as u64));
    let counted: f64 = caught
        .records
        .iter()
        .filter(|point| point["name"] == "size.count")
        .filter_map(|point| point["value"].as_f64())
        .sum();
    assert_eq!(counted, quantile.sent as f64, "every record used is in exactly one window");
    (report, caught)
}

/// Windows of one series in the order of arrival: label (quantile or statistic) to value, and the begin.
fn windows(caught: &Caught, group: &str) -> Vec<(String, BTreeMap<String, f64>)> {
    let mut found: Vec<(String, BTreeMap<String, f64>)> = Vec::new();
    for point in caught.records.iter().filter(|point| point["attributes"][GROUP] == group) {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text in {point}")).to_owned();
        let label = match text(&point["name"]).strip_prefix("size.") {
            Some("quantile") => text(&point["attributes"]["quantile"]),
            Some(statistic) => statistic.to_owned(),
            None => panic!("not of the measure: {point}"),
        };
        assert_eq!(point["unit"], if label == "count" { "1" } else { "By" }, "{point}");
        let is_next = found.last().is_none_or(|(_, window)| window.contains_key(&label));
        if is_next {
            found.push((text(&point["start_time"]), BTreeMap::new()));
        }
        let (_, window) = found.last_mut().expect("just made");
        let _ = window.insert(label, point["value"].as_f64().expect("a number"));
    }
    found
}

/// Sorting and counting.
fn naive(values: &[f64]) -> BTreeMap<String, f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut expected: BTreeMap<String, f64> = QUANTILES
        .iter()
        .map(|(thousandths, label)| {
            let rank = (thousandths * sorted.len()).div_ceil(1000).max(1);
            ((*label).to_owned(), sorted[rank - 1])
        })
        .collect();
    expected.extend([
        ("count".to_owned(), sorted.len() as f64),
        ("sum".to_owned(), sorted.iter().sum()),
        ("min".to_owned(), sorted[0]),
        ("max".to_owned(), sorted[sorted.len() - 1]),
    ]);
    expected
}

/// Series of different lengths side by side in windows of 100; what is left over is sent when nothing more comes.
fn count_windows(method: &str) {
    let (a, b) = (values(1, 250), values(2, 130));
    let mut lines = Vec::new();
    for at in 0..a.len() {
        lines.extend(
            [("a", &a), ("b", &b)].iter().filter_map(|(group, all)| Some(line("-", group, &all.get(at)?.to_string()))),
        );
    }
    let (report, caught) = run(method, "{count: 100}", &lines, 5);
    for (group, all) in [("a", &a), ("b", &b)] {
        let expected: Vec<_> = all.chunks(100).map(naive).collect();
        let found: Vec<_> = windows(&caught, group).into_iter().map(|(_, window)| window).collect();
        assert_eq!(found, expected, "series {group}");
    }
    assert_eq!((report.node("edge/quantile").dropped, report.node("edge/quantile").note("windows")), (0, 5));
}

#[test]
fn exact_count_windows() {
    count_windows("exact");
}

/// A sketch that has not been compacted yet holds every value.
#[test]
fn kll_of_few_values_is_exact() {
    count_windows("kll");
}

/// 2026-11-30T12:00:0xZ and so on, some seconds after a full ten seconds well before now.
fn stamp(begin: u64, second: u64) -> String {
    let time = begin + second;
    let (days, rest) = (time / 86_400, time % 86_400);
    // Days to a date, by counting: there are few years since 1970.
    let (mut year, mut day) = (1970, days);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}T{:02}:{:02}:{:02}Z", month + 1, day + 1, rest / 3600, rest / 60 % 60, rest % 60)
}

/// Windows of ten seconds by the stamps of the lines: the last one is sent when nothing more comes; a line of a window
/// that is out already is late.
#[test]
fn tumbling_windows_by_event_time() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let begin = now / 10 * 10 - 600;
    let all = values(3, 400);
    let mut lines = Vec::new();
    let mut expected: BTreeMap<(u64, &str), Vec<f64>> = BTreeMap::new();
    for (at, value) in all.iter().enumerate() {
        let second = at as u64 / 10;
        let group = if at % 3 == 0 { "a" } else { "b" };
        lines.push(line(&stamp(begin, second), group, &value.to_string()));
        expected.entry((begin + second / 10 * 10, group)).or_default().push(*value);
    }
    lines.push(line(&stamp(begin, 5), "a", "1"));
    let (report, caught) = run("exact", "{tumbling: 10s, clock: event_time}", &lines, expected.len());
    assert_eq!(report.node("edge/quantile").reason("late"), 1);
    assert_eq!(report.node("edge/quantile").dropped, 1);
    for group in ["a", "b"] {
        let found = windows(&caught, group);
        let expected: Vec<_> = expected
            .iter()
            .filter(|((_, of), _)| *of == group)
            .map(|((start, _), values)| (stamp(*start, 0).replace('Z', ".000000000Z"), naive(values)))
            .collect();
        assert_eq!(found, expected, "series {group}");
    }
}

/// Lines without the attribute and with text that is no number are dropped and counted by reason.
#[test]
fn what_is_no_number_is_counted() {
    let mut lines: Vec<_> = values(4, 50).iter().map(|value| line("-", "a", &value.to_string())).collect();
    lines.extend(["abc", "", "NaN", "inf", "1e999"].map(|text| line("-", "a", text)));
    lines.extend(
        ["<13>1 - host app - - - no data\n", "<13>Jan  1 00:00:00 host app: old\n", "nothing at all\n"]
            .map(str::to_owned),
    );
    let (report, caught) = run("exact", "{count: 50}", &lines, 1);
    let quantile = report.node("edge/quantile");
    assert_eq!((quantile.reason("no value"), quantile.reason("not a number")), (3, 5), "{quantile:?}");
    assert_eq!((quantile.sent, quantile.dropped), (50, 8));
    assert_eq!(windows(&caught, "a")[0].1, naive(&values(4, 50)));
}
