//! SONiC's high-frequency telemetry: payloads over UDP and a unix socket, with their sessions from files and from Redis,
//! become points.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use catchment_tests::expected::own_captures;
use catchment_tests::flows::receiver;
use catchment_tests::message::{send, socket_on};
use catchment_tests::{Caught, Engine, Flows, NodeLine, Redis, Scene, Sink, catchment, run, wait_for, wait_until};
use serde_json::{Value, json};

/// The vectors.
const CASES: [&str; 6] = [
    "sonic-bad-framing",
    "sonic-multi-record-multi-set",
    "sonic-pg-split-over-two-templates",
    "sonic-port-basic",
    "sonic-queue-extension-bits",
    "sonic-seconds-plus-nanos-placeholders",
];

/// One vector: its session, its payloads, and the points that they are.
struct Case {
    name: &'static str,
    json: Value,
}

impl Case {
    fn load(name: &'static str) -> Self {
        let bytes = std::fs::read(Self::path(name)).expect("a vector");
        Self { name, json: serde_json::from_slice(&bytes).expect("JSON") }
    }

    fn path(name: &str) -> PathBuf {
        own_captures().join(format!("sonic/{name}.session.json"))
    }

    fn payload_files(&self) -> impl Iterator<Item = PathBuf> {
        let files = self.json["datagram_files"].as_array().expect("files").iter().filter_map(Value::as_str);
        files.map(|file| own_captures().join("sonic").join(file))
    }

    fn payloads(&self) -> Vec<Vec<u8>> {
        self.payload_files().map(|file| std::fs::read(file).expect("a payload")).collect()
    }

    /// The setting that makes its session known.
    fn files(&self) -> String {
        format!("files: [\"{}\"]", Self::path(self.name).display())
    }

    /// Numbers of the payloads that are to be rejected, from 1 on.
    fn rejected(&self) -> Vec<u64> {
        let numbers = self.json["expected_rejected_datagrams"].as_array();
        numbers.into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    fn points(&self) -> &[Value] {
        self.json["expected_points_in_order"].as_array().expect("points")
    }

    fn send(&self, socket: &UdpSocket, flows: &Flows) {
        for payload in self.payloads() {
            send(socket, flows.address(), &payload);
        }
    }
}

/// The forms of a point that can be chosen.
#[derive(Debug, Clone, Copy)]
struct Form {
    names: &'static str,
    attributes_at: &'static str,
}

impl Form {
    const ALL: [Self; 4] = [
        Self { names: "sai", attributes_at: "point" },
        Self { names: "sai", attributes_at: "resource" },
        Self { names: "legacy", attributes_at: "point" },
        Self { names: "legacy", attributes_at: "resource" },
    ];

    fn config(self, sessions: &str) -> String {
        let Self { names, attributes_at } = self;
        let sonic = format!("names: {names}, attributes_at: {attributes_at}, sessions: {{{sessions}}}");
        format!("{}, profile: sonic_hft, sonic: {{{sonic}}}", Flows::UDP)
    }

    /// An expected point as [`seen`](Self::seen) gives it, and the series that it belongs to.
    fn expected(self, point: &Value) -> (String, Value) {
        let text = |key: &str| point[key].as_str().unwrap_or_else(|| panic!("no {key} in {point}")).to_owned();
        let (kind, stat) = if self.names == "sai" {
            (("sai_type", text("sai_type")), ("sai_stat", text("sai_stat")))
        } else {
            (("sai_type_id", point["sai_type_id"].to_string()), ("sai_stat_id", point["sai_stat_id"].to_string()))
        };
        let name =
            if self.names == "sai" { stat.1.clone() } else { format!("sai_counter_type_{}_stat_{}", kind.1, stat.1) };
        let (of_point, of_resource) = if self.attributes_at == "point" {
            (json!({"object_name": text("object_name"), kind.0: kind.1, stat.0: stat.1}), json!({}))
        } else {
            (json!({}), json!({"object": text("object_name"), kind.0: kind.1}))
        };
        let number: u64 = text("value").parse().expect("a number");
        // What is above the range of OTLP's integers is its end.
        let value = i64::try_from(number).unwrap_or(i64::MAX);
        let time: i64 = text("time_unix_nano").parse().expect("a number");
        let series = format!("{name} {of_point} {of_resource}");
        (series, json!([name, of_point, of_resource, time, value]))
    }

    /// A printed point, and the series that it belongs to.
    fn seen(self, point: &Value) -> (String, Value) {
        let name = point["name"].as_str().expect("a name");
        let of_point = &point["attributes"];
        let mut of_resource = point["resource"].clone();
        // What is the same for all of the engine.
        if let Some(resource) = of_resource.as_object_mut() {
            resource.retain(|key, _| key != "service.name");
        }
        let time = point["time"].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()).expect("a time");
        let time = i64::try_from(time.as_nanosecond()).expect("a time of this age");
        assert_eq!(point["type"], "gauge", "{point}");
        let series = format!("{name} {of_point} {of_resource}");
        (series, json!([name, of_point, of_resource, time, point["value"]]))
    }
}

/// The points of each series in their order.
fn series(points: impl Iterator<Item = (String, Value)>) -> BTreeMap<String, Vec<Value>> {
    let mut series: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (key, point) in points {
        series.entry(key).or_default().push(point);
    }
    series
}

fn compare(form: Form, caught: &Caught, expected: &[&Case]) {
    let found = series(caught.records.iter().map(|point| form.seen(point)));
    let expected = series(expected.iter().flat_map(|case| case.points()).map(|point| form.expected(point)));
    assert_eq!(found, expected);
}

/// Stops both once `count` points have come; gives the line of the receiver and what the sink has got.
fn stop(flows: Flows, count: usize) -> (NodeLine, Caught) {
    let Flows { engine, mut sink } = flows;
    sink.wait_for(count);
    let stopped = engine.stop();
    let caught = sink.stop();
    let line = receiver(stopped.expect_clean()).clone();
    assert_eq!((line.received, line.sent), (Some(count as u64), count as u64), "{line:?}");
    assert_eq!((caught.logs, caught.points), (0, count as u64));
    (line, caught)
}

/// Every vector with its session from a file, in every form.
#[test]
fn sessions_from_files() {
    for case in CASES.map(Case::load) {
        for form in Form::ALL {
            let scene = Scene::new();
            let flows = Flows::start(&scene, &form.config(&case.files()));
            case.send(&socket_on(1), &flows);
            let (line, caught) = stop(flows, case.points().len());
            compare(form, &caught, &[&case]);
            assert_eq!(line.note("malformed messages"), case.rejected().len() as u64, "{line:?}");
            assert_eq!(line.note("sets without template"), 0, "{line:?}");
        }
    }
}

/// `catchment decode` prints the points of each payload of every vector in the order of the wire, in every form, and
/// tells every payload that is to be rejected.
#[test]
fn decoded_in_the_order_of_the_wire() {
    for case in CASES.map(Case::load) {
        for form in Form::ALL {
            let (mut found, mut rejected) = (Vec::new(), Vec::new());
            for (number, file) in (1..).zip(case.payload_files()) {
                let mut command = catchment();
                let _ = command.args(["decode", "ipfix", "--profile", "sonic_hft", "--names", form.names]);
                let _ = command.args(["--attributes-at", form.attributes_at]);
                let _ = command.arg("--templates").arg(Case::path(case.name)).arg(file);
                let ended = run(&mut command);
                if ended.code == Some(1) {
                    assert!(ended.stderr.starts_with("offset 0: "), "{}: {}", case.name, ended.stderr);
                    assert_eq!(ended.stdout, "", "{}: nothing of a bad payload is printed", case.name);
                    rejected.push(number);
                } else {
                    assert_eq!(ended.expect_code(0).stderr, "");
                }
                let points = ended.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
                found.extend(points.map(|point: Value| form.seen(&point).1));
            }
            let expected: Vec<_> = case.points().iter().map(|point| form.expected(point).1).collect();
            assert_eq!(found, expected, "{} as {form:?}", case.name);
            assert_eq!(rejected, case.rejected(), "{}", case.name);
        }
    }
}

/// The same payloads over a unix socket, all vectors of one receiver after the other with their sessions replaced while
/// it runs.
#[test]
fn payloads_over_a_unix_socket() {
    let form = Form::ALL[0];
    let scene = Scene::new();
    let (socket, sessions) = (scene.path("ipfix.sock"), scene.path("sessions.json"));
    let first = Case::load(CASES[0]);
    std::fs::write(&sessions, first.json.to_string()).expect("the scene can be written to");
    let files = format!("files: [\"{}\"], file_interval: 50ms", sessions.display());
    let config = form.config(&files).replace(Flows::UDP, &format!("unix: {{path: \"{}\"}}", socket.display()));
    let mut flows = Flows::start(&scene, &config);
    let sender = UnixDatagram::unbound().expect("a socket");
    let (mut count, mut sent, mut rejected) = (0, 0, 0);
    for case in CASES.map(Case::load) {
        let new = scene.write("sessions.new", case.json.to_string());
        std::fs::rename(new, &sessions).expect("the same folder");
        // A payload that can be read tells by its points when the session is that of the case.
        let payloads = case.payloads();
        let probe = payloads.last().expect("a payload");
        let of_case: Vec<_> = case.points().iter().map(|point| form.expected(point).1).collect();
        wait_until("the session is that of the file", || {
            let _ = sender.send_to(probe, &socket).expect("it is read");
            sent += 1;
            let found = flows.sink.records();
            found.len() > count && found.last().is_some_and(|point| of_case.contains(&form.seen(point).1))
        });
        wait_until("all is at the sink", || {
            let read = flows.metric("datagrams_received") == sent;
            read && flows.metric("records_acknowledged") == flows.metric("records_received")
        });
        count = flows.sink.records().len();
        for payload in &payloads {
            let _ = sender.send_to(payload, &socket).expect("it is read");
            sent += 1;
        }
        count += case.points().len();
        flows.sink.wait_for(count);
        let found = flows.sink.records();
        let found = series(found[count - case.points().len()..].iter().map(|point| form.seen(point)));
        assert_eq!(found, series(case.points().iter().map(|point| form.expected(point))), "{}", case.name);
        rejected += case.rejected().len() as u64;
    }
    let (line, _) = stop(flows, count);
    assert_eq!(line.note("malformed messages"), rejected, "{line:?}");
    assert!(!socket.exists(), "the socket is removed");
}

/// Points that leave the receiver undecoded are decoded by the node behind it to the same.
#[test]
fn encoded_points() {
    for name in ["sonic-multi-record-multi-set", "sonic-seconds-plus-nanos-placeholders"] {
        let case = Case::load(name);
        for form in Form::ALL {
            let scene = Scene::new();
            let flows = Flows::start(&scene, &format!("{}, emit: encoded", form.config(&case.files())));
            case.send(&socket_on(1), &flows);
            let (_, caught) = stop(flows, case.points().len());
            compare(form, &caught, &[&case]);
        }
    }
}

/// The same over OTLP.
#[test]
fn points_over_otlp() {
    let (case, form) = (Case::load("sonic-port-basic"), Form::ALL[0]);
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let otlp = "{type: exporter:otlp_grpc, config: {grpc_endpoint: \"http://127.0.0.1:@sink@\"}}";
    let engine = Engine::start(&scene, &Flows::yaml_to(&form.config(&case.files()), otlp), &[("sink", sink.otlp())]);
    let flows = Flows { engine, sink };
    case.send(&socket_on(1), &flows);
    let (_, caught) = stop(flows, case.points().len());
    compare(form, &caught, &[&case]);
}

/// The row of a session as the switch writes it.
fn set(redis: &Redis, case: &Case, object_names: &str) {
    let row = &case.json["redis"];
    let field = |key: &str| row["fields"][key].as_str().expect("a field").as_bytes().to_vec();
    let hex = field("session_config_hex");
    let digits = std::str::from_utf8(&hex).expect("hex");
    let config: Vec<u8> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect();
    let key = row["key"].as_str().expect("a key").as_bytes();
    let (status, kind, ids) = (field("stream_status"), field("session_type"), field("object_ids"));
    redis.command(&[
        b"HSET",
        key,
        b"stream_status",
        &status,
        b"session_type",
        &kind,
        b"object_names",
        object_names.as_bytes(),
        b"object_ids",
        &ids,
        b"session_config",
        &config,
    ]);
}

/// The setting that makes the receiver follow the sessions of a Redis.
fn sessions_of(redis: &Redis) -> String {
    format!("redis: {{unix_socket: \"{}\", rescan_interval: 100ms}}", redis.socket().display())
}

fn object_names(case: &Case) -> &str {
    case.json["redis"]["fields"]["object_names"].as_str().expect("names")
}

/// Vectors whose session is in Redis before the engine starts.
#[test]
fn sessions_from_redis() {
    let form = Form::ALL[0];
    let scene = Scene::new();
    let Some(redis) = Redis::start(&scene) else { return };
    for case in ["sonic-pg-split-over-two-templates", "sonic-queue-extension-bits"].map(Case::load) {
        set(&redis, &case, object_names(&case));
        let flows = Flows::start(&scene, &form.config(&sessions_of(&redis)));
        // The session may come to the receiver after it is ready.
        let (payloads, mut sent) = (case.payloads(), 0);
        wait_until("the session is known", || {
            send(&socket_on(2), flows.address(), &payloads[0]);
            sent += 1;
            !flows.sink.records().is_empty()
        });
        wait_until("all is at the sink", || {
            let read = flows.metric("datagrams_received") == sent;
            read && flows.metric("bytes_waiting") + flows.metric("bytes_in_flight") == 0
        });
        let before = flows.sink.records().len();
        case.send(&socket_on(1), &flows);
        let (_, mut caught) = stop(flows, before + case.points().len());
        let _ = caught.records.drain(..before);
        compare(form, &caught, &[&case]);
        // Sessions of different vectors have the same templates.
        redis.command(&[b"DEL", case.json["redis"]["key"].as_str().expect("a key").as_bytes()]);
    }
}

/// A session that comes while the engine runs, and one whose objects get other names.
#[test]
fn a_session_that_changes() {
    let form = Form::ALL[0];
    let scene = Scene::new();
    let Some(redis) = Redis::start(&scene) else { return };
    let case = Case::load("sonic-port-basic");
    let flows = Flows::start(&scene, &form.config(&sessions_of(&redis)));
    let exporter = socket_on(1);
    // Nobody has said yet what this is.
    case.send(&exporter, &flows);
    wait_until("it is read", || flows.metric("datagrams_received") == case.payloads().len() as u64);
    assert!(flows.sink.records().is_empty());
    for names in [object_names(&case).to_owned(), object_names(&case).replace("Ethernet", "Port")] {
        set(&redis, &case, &names);
        let first = names.split(',').next().expect("a name").to_owned();
        let has_it = |point: &Value| point["attributes"]["object_name"] == *first;
        wait_for("points have the names of the session", || {
            case.send(&exporter, &flows);
            flows.sink.records().iter().any(has_it).then_some(())
        });
    }
    let Flows { engine, sink } = flows;
    let stopped = engine.stop();
    let caught = sink.stop();
    let _ = stopped.expect_clean();
    assert!(caught.records.len() >= 2 * case.points().len(), "{}", caught.records.len());
}

/// A family that the kernel does not have: it is told by name, looked for again and again, and the other inputs of the
/// receiver work.
#[test]
fn a_netlink_family_that_is_missing() {
    let (case, form) = (Case::load("sonic-port-basic"), Form::ALL[0]);
    let scene = Scene::new();
    let netlink = "netlink: {family: no_such, group: of_nobody, retry_interval: 50ms}";
    let flows = Flows::start(&scene, &format!("{}, {netlink}", form.config(&case.files())));
    wait_until("it is looked for again", || flows.metric("netlink_failures") >= 3);
    case.send(&socket_on(1), &flows);
    let Flows { engine, mut sink } = flows;
    sink.wait_for(case.points().len());
    let stopped = engine.stop();
    compare(form, &sink.stop(), &[&case]);
    let _ = stopped.expect_clean();
    let told = stopped.ended.stderr.lines().chain(stopped.ended.stdout.lines());
    let told: Vec<_> = told.filter(|line| line.contains("netlink")).collect();
    let says = |words: &str| told.iter().any(|line| line.contains(words));
    assert!(says("no_such") && says("of_nobody"), "{told:?}");
    assert_eq!(told.len(), 1, "not at each look: {told:?}");
}
