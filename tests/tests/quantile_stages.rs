//! Branches, a merge and an estimate as processes of their own, from the shipped configurations, over OTAP and over OTLP.
//! Some are killed in the middle: each observation counts once, or is told of.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;

use catchment_tests::{Caught, Engine, Scene, Sink, shipped, wait_until};
use nix::sys::signal::Signal;

/// How the processes talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Otap,
    Otlp,
}

/// What senders do when a branch has been restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Senders {
    SendAgain,
    GoOn,
}

/// Points of a window and series: three quantiles and four statistics.
const POINTS: usize = 7;
const WINDOWS: [&str; 4] = ["2026-11-01T12:00:00", "2026-11-01T12:00:10", "2026-11-01T12:00:20", "2026-11-01T12:00:30"];
const MANY: usize = 20;
const BRANCH: &str = "processor.quantile";
const MERGE: &str = "processor.quantile.merge";

/// Of each window, by its start: label (quantile or statistic) to value.
type Windows = BTreeMap<String, BTreeMap<String, f64>>;

/// All processes, of which any may be away.
struct World {
    wire: Wire,
    method: &'static str,
    senders: Senders,
    sink: Sink,
    estimate: Engine,
    merge: Option<Engine>,
    branches: [Option<Engine>; 2],
    merge_port: u16,
    scene: Scene,
}

impl World {
    fn start(wire: Wire, method: &'static str, senders: Senders) -> Self {
        let scene = Scene::new();
        let sink = Sink::start(&scene);
        let exporter = "type: exporter:otap\n            config: {grpc_endpoint: \"http://127.0.0.1:@sink@\"}";
        let changes = [
            ("type: urn:catchment:exporter:console_table\n            config: {}", exporter),
            ("quantiles: [0.5, 0.9, 0.99]", "quantiles: [0, 0.5, 1]"),
            ("statistics: [count, max]", "statistics: [count, sum, min, max]"),
        ];
        let estimate = Engine::start(&scene, &Self::yaml("estimate", wire, &changes), &[("sink", sink.otap())]);
        let mut world = Self {
            wire,
            method,
            senders,
            sink,
            estimate,
            merge: None,
            branches: [None, None],
            merge_port: catchment_tests::free_port(),
            scene,
        };
        world.start_merge();
        world.start_branch(0);
        world.start_branch(1);
        world
    }

    fn yaml(stage: &str, wire: Wire, changes: &[(&str, &str)]) -> String {
        let suffix = if wire == Wire::Otlp { "-otlp" } else { "" };
        let always = [("reporting_interval: 1s", "reporting_interval: 100ms"), ("level: info", "level: warn")];
        shipped(&format!("quantile-{stage}{suffix}.yaml"), &[&always, changes].concat())
    }

    fn start_merge(&mut self) {
        let mut changes = vec![("max_wait: 15s", "max_wait: 60s")];
        if self.senders == Senders::SendAgain {
            changes.push(("restarted_source: add", "restarted_source: replace"));
        }
        let yaml = Self::yaml("merge", self.wire, &changes);
        let ports = [("p4417", self.merge_port), ("p4418", self.estimate.port("p4418"))];
        self.merge = Some(Engine::start(&self.scene, &yaml, &ports));
    }

    fn start_branch(&mut self, which: usize) {
        let source = ["source: branch-a", "source: branch-b"][which];
        let window =
            format!("window: {{tumbling: 10s}}\n              idle_flush: 1h\n              method: {}", self.method);
        let changes = [
            ("source: branch-a", source),
            ("window: {tumbling: 10s, clock: observed_time}", window.as_str()),
            ("announce_empty: clock", "announce_empty: watermark"),
        ];
        let yaml = Self::yaml("branch", self.wire, &changes);
        self.branches[which] = Some(Engine::start(&self.scene, &yaml, &[("p4417", self.merge_port)]));
    }

    /// By SIGKILL, and starts it again.
    fn kill_branch(&mut self, which: usize) {
        drop(self.branches[which].take());
        self.start_branch(which);
    }

    fn kill_merge(&mut self) {
        drop(self.merge.take());
        self.start_merge();
    }

    fn branch(&self, which: usize) -> &Engine {
        self.branches[which].as_ref().expect("it runs")
    }

    /// Sends a branch observations `values` of a window and waits until they are in it.
    fn send(&self, which: usize, window: usize, values: std::ops::Range<usize>) {
        self.send_all(which, &values.map(|value| (WINDOWS[window].to_owned(), value)).collect::<Vec<_>>());
    }

    /// Sends a branch observations with their times and waits until they are in their windows.
    fn send_all(&self, which: usize, observations: &[(String, usize)]) {
        let branch = self.branch(which);
        let all = branch.metric(BRANCH, "items_used") + observations.len() as u64;
        let mut stream = TcpStream::connect(branch.address("p5514")).expect("a connection");
        let line =
            |(time, value): &(String, usize)| format!("<13>1 {time}Z host app - - [m@1 g=\"x\" v=\"{value}\"] x\n");
        let lines: String = observations.iter().map(line).collect();
        stream.write_all(lines.as_bytes()).expect("the lines are taken");
        wait_until("they are in their window", || branch.metric(BRANCH, "items_used") == all);
    }

    fn wait_acknowledged(&self, which: usize, lines: u64) {
        let acknowledged = || self.branch(which).metric("receiver.syslog", "messages_acknowledged");
        wait_until(&format!("{lines} lines are acknowledged"), || acknowledged() == lines);
    }

    fn wait_merge(&self, field: &str, value: u64) {
        let merge = self.merge.as_ref().expect("it runs");
        wait_until(&format!("the merge has {value} {field}"), || merge.metric(MERGE, field) == value);
    }

    /// Both branches send what is open, and end, with so many lines acknowledged.
    fn stop_branches(&mut self, lines: [u64; 2]) {
        let stopped = std::thread::scope(|scope| {
            let stops: Vec<_> = self.branches.iter_mut().map(|branch| branch.take().expect("it runs")).collect();
            let stops: Vec<_> = stops.into_iter().map(|branch| scope.spawn(|| branch.stop())).collect();
            stops.into_iter().map(|stop| stop.join().expect("it ends")).collect::<Vec<_>>()
        });
        for (stopped, lines) in stopped.iter().zip(lines) {
            let report = stopped.expect_clean();
            assert_eq!(report.node("branch/syslog").note("acknowledged"), lines, "all, as all windows were sent");
        }
    }

    /// Ends the rest. Complete and incomplete windows, and messages dropped, of the merge and of the estimate; and what came.
    fn finish(self) -> ([u64; 3], [u64; 3], Windows) {
        let account = |engine: Engine, name: &str| {
            let stopped = engine.stop();
            let node = stopped.expect_clean().node(name).clone();
            [node.note("complete windows"), node.note("incomplete windows"), node.dropped]
        };
        let merge = account(self.merge.expect("it runs"), "merge/quantile");
        let estimate = account(self.estimate, "estimate/quantile");
        (merge, estimate, windows(&self.sink.stop()))
    }
}

fn windows(caught: &Caught) -> Windows {
    let mut found: Windows = BTreeMap::new();
    for point in &caught.records {
        let name = point["name"].as_str().expect("a name").trim_start_matches("app.value.");
        let label = point["attributes"]["quantile"].as_str().unwrap_or(name);
        assert_eq!(point["attributes"]["syslog.structured_data.m@1.g"], "x", "{point}");
        assert!(point["attributes"].get("quantile.sources").is_none(), "all sources are there: {point}");
        let start = point["start_time"].as_str().expect("a time")[..19].to_owned();
        let value = point["value"].as_f64().expect("a number");
        let twice = found.entry(start).or_default().insert(label.to_owned(), value);
        assert_eq!(twice, None, "a window came twice: {point}");
    }
    found
}

/// What windows with these values come to, each value once.
fn expected(values: &[std::ops::Range<usize>]) -> Windows {
    let of = |values: &std::ops::Range<usize>| {
        let (first, last) = (values.start as f64, (values.end - 1) as f64);
        let median = (values.start + (values.len() - 1) / 2) as f64;
        let (count, sum) = (values.len() as f64, values.clone().sum::<usize>() as f64);
        [("0", first), ("0.5", median), ("1", last), ("count", count), ("sum", sum), ("min", first), ("max", last)]
            .map(|(label, value)| (label.to_owned(), value))
            .into()
    };
    WINDOWS.iter().map(|start| (*start).to_owned()).zip(values.iter().map(of)).collect()
}

/// A branch is killed with observations in an open window that nobody has acknowledged, and its sender sends them again
/// after the restart. In one window the other branch has nothing: it says so, and nobody waits.
fn a_branch_is_killed_with_an_open_window(wire: Wire, method: &'static str) {
    let mut world = World::start(wire, method, Senders::SendAgain);
    world.send(0, 0, 0..60);
    world.send(1, 0, 60..100);
    // The first lines of the next window close this one.
    world.send(0, 1, 0..30);
    assert_eq!(world.branch(0).metric("receiver.syslog", "messages_acknowledged"), 0, "the other branch is missing");
    world.send(1, 2, 40..50);
    world.sink.wait_for(POINTS);
    world.wait_acknowledged(0, 60);
    world.wait_acknowledged(1, 40);

    world.kill_branch(0);
    world.send(0, 1, 0..30);
    world.send(0, 1, 30..100);
    world.send(0, 2, 0..40);
    world.sink.wait_for(2 * POINTS);
    world.wait_acknowledged(0, 100);
    world.stop_branches([140, 50]);
    world.sink.wait_for(3 * POINTS);
    let (merge, estimate, found) = world.finish();
    assert_eq!((merge, estimate), ([3, 0, 0], [3, 0, 0]));
    assert_eq!(found, expected(&[0..100, 0..100, 0..50]));
}

/// A branch is killed after it has sent a window and before it has heard of it. Senders that send again send all of the
/// window, and that counts instead; those that go on send the rest, and both count.
fn a_branch_is_killed_with_a_window_under_way(wire: Wire, senders: Senders) {
    let mut world = World::start(wire, "exact", senders);
    world.send(0, 0, 0..60);
    world.send(0, 1, 0..10);
    world.wait_merge("messages_waiting", 1);
    world.kill_branch(0);
    let (again, replaced) = match senders {
        Senders::SendAgain => (0, 1),
        Senders::GoOn => (60, 0),
    };
    world.send(0, 0, again..80);
    world.send(0, 1, 0..10);
    world.wait_merge("messages_received", 2);
    world.wait_merge("dropped_replaced", replaced);
    world.send(1, 0, 80..100);
    world.send(1, 1, 10..20);
    world.sink.wait_for(POINTS);
    world.wait_acknowledged(0, 80 - again as u64);
    world.wait_acknowledged(1, 20);
    world.stop_branches([90 - again as u64, 30]);
    world.sink.wait_for(2 * POINTS);
    let (merge, estimate, found) = world.finish();
    assert_eq!((merge, estimate), ([2, 0, replaced], [2, 0, 0]));
    assert_eq!(found, expected(&[0..100, 0..20]));
}

/// The merge is killed twice: while it holds a part of a window, and while a window that it has sent on has no outcome.
fn the_merge_is_killed(wire: Wire) {
    let mut world = World::start(wire, "exact", Senders::SendAgain);
    world.send(0, 0, 0..60);
    world.send(0, 1, 0..10);
    world.wait_merge("messages_waiting", 1);
    world.kill_merge();
    world.send(1, 0, 60..100);
    world.sink.signal(Signal::SIGSTOP);
    world.send(1, 1, 10..20);
    // The estimate has the window, and cannot say that it is out.
    wait_until("the window is out of the estimate", || world.estimate.metric(MERGE, "windows_complete") == 1);
    assert_eq!(world.branch(0).metric("receiver.syslog", "messages_acknowledged"), 0);
    world.kill_merge();
    // A run of each branch: runs are passed on as they are.
    wait_until("it has come again", || world.estimate.metric(MERGE, "dropped_late") == 2);
    assert_eq!(world.branch(0).metric("receiver.syslog", "messages_acknowledged"), 0, "it waits with the first");
    world.sink.signal(Signal::SIGCONT);
    world.sink.wait_for(POINTS);
    world.wait_acknowledged(0, 60);
    world.wait_acknowledged(1, 40);
    world.stop_branches([70, 50]);
    world.sink.wait_for(2 * POINTS);
    let (merge, estimate, found) = world.finish();
    assert_eq!((merge, estimate), ([2, 0, 0], [2, 0, 2]));
    assert_eq!(found, expected(&[0..100, 0..20]));
}

/// As many windows wait for one branch as there are requests under way: more than receivers and exporters allow by default.
fn many_windows_wait(wire: Wire) {
    let mut world = World::start(wire, "exact", Senders::SendAgain);
    let times = (0..MANY).map(|window| format!("2026-11-01T13:{:02}:{:02}", window / 6, window % 6 * 10));
    let observations: Vec<_> = times.zip(0..MANY).collect();
    // Each closes the window before, so that each is a request of its own.
    observations.iter().for_each(|one| world.send_all(0, std::slice::from_ref(one)));
    // The last one is open.
    world.wait_merge("windows_waiting", MANY as u64 - 1);
    world.send_all(1, &observations);
    world.sink.wait_for((MANY - 1) * POINTS);
    world.wait_acknowledged(0, MANY as u64 - 1);
    world.stop_branches([MANY as u64; 2]);
    world.sink.wait_for(MANY * POINTS);
    let (merge, estimate, found) = world.finish();
    assert_eq!((merge, estimate), ([MANY as u64, 0, 0], [MANY as u64, 0, 0]));
    for (time, value) in observations {
        assert_eq!((found[&time]["count"], found[&time]["sum"]), (2.0, 2.0 * value as f64));
    }
}

/// The merge is stopped with a part of a window, and started again: it gives the part back, and the next one completes the
/// window. (Over OTAP it takes 40 s: the receiver waits for the branches to close their streams.)
#[test]
fn the_merge_is_stopped_over_otlp() {
    let mut world = World::start(Wire::Otlp, "kll", Senders::GoOn);
    world.send(0, 0, 0..60);
    world.send(0, 1, 0..10);
    world.wait_merge("messages_waiting", 1);
    let stopped = world.merge.take().expect("it runs").stop();
    let account = stopped.expect_clean().node("merge/quantile").clone();
    assert_eq!((account.reasons.get("returned"), account.sent), (Some(&1), 0));
    world.start_merge();
    world.send(1, 0, 60..100);
    world.send(1, 1, 10..20);
    world.sink.wait_for(POINTS);
    world.wait_acknowledged(0, 60);
    world.stop_branches([70, 50]);
    world.sink.wait_for(2 * POINTS);
    let (merge, estimate, found) = world.finish();
    assert_eq!((merge, estimate), ([2, 0, 0], [2, 0, 0]));
    assert_eq!(found, expected(&[0..100, 0..20]));
}

#[test]
fn many_windows_wait_over_otap() {
    many_windows_wait(Wire::Otap);
}

#[test]
fn many_windows_wait_over_otlp() {
    many_windows_wait(Wire::Otlp);
}

#[test]
fn a_branch_is_killed_with_an_open_window_over_otap() {
    a_branch_is_killed_with_an_open_window(Wire::Otap, "exact");
}

/// Sketches of so few values hold them all.
#[test]
fn a_branch_is_killed_with_an_open_window_over_otlp() {
    a_branch_is_killed_with_an_open_window(Wire::Otlp, "kll");
}

#[test]
fn a_branch_is_killed_with_a_window_under_way_over_otap() {
    a_branch_is_killed_with_a_window_under_way(Wire::Otap, Senders::SendAgain);
}

#[test]
fn a_branch_is_killed_with_a_window_under_way_over_otlp() {
    a_branch_is_killed_with_a_window_under_way(Wire::Otlp, Senders::SendAgain);
}

#[test]
fn what_a_killed_branch_had_sent_is_added_to() {
    a_branch_is_killed_with_a_window_under_way(Wire::Otlp, Senders::GoOn);
}

#[test]
fn the_merge_is_killed_over_otap() {
    the_merge_is_killed(Wire::Otap);
}

#[test]
fn the_merge_is_killed_over_otlp() {
    the_merge_is_killed(Wire::Otlp);
}
