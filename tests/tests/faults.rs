//! Wrong configurations, and surroundings that are not as the configuration says.

use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use catchment_tests::{Ended, HEAD, Process, Scene, catchment, free_port, local, run};

/// A configuration of one pipeline `edge` in the group `site`: `input`, an optional quantile, `output`.
fn config(input: &str, output: &str) -> String {
    format!(
        "{}groups:\n  site:\n    pipelines:\n      edge:\n        nodes:\n          input: {input}\n          output: \
         {output}\n        connections: [{{from: input, to: output}}]\n",
        HEAD.replace("@admin@", &free_port().to_string()),
    )
}

fn syslog(config: &str) -> String {
    format!("{{type: \"urn:catchment:receiver:syslog\", config: {config}}}")
}

fn ipfix(config: &str) -> String {
    format!("{{type: \"urn:catchment:receiver:ipfix\", config: {config}}}")
}

fn quantile(settings: &str) -> String {
    // In the place of the exporter only its own configuration is looked at.
    format!("{{type: \"urn:catchment:processor:quantile\", config: {settings}}}")
}

const NOOP: &str = "{type: \"exporter:noop\", config: {}}";

/// Validation and a start find the same fault, with exit code 2 and all of `said` in the message.
fn assert_refused(scene: &Scene, yaml: &str, said: &[&str]) {
    let file = scene.write("config.yaml", yaml);
    let validated = run(catchment().arg("validate").arg(&file));
    let started = run(catchment().arg("--config").arg(&file));
    for ended in [validated, started] {
        assert_eq!(ended.code, Some(2), "{yaml}\n{}\n{}", ended.stdout, ended.stderr);
        for part in said {
            assert!(ended.stderr.contains(part), "`{part}` is not in: {}", ended.stderr);
        }
    }
}

/// Unknown keys, wrong types and values out of range name group, pipeline, node, key and what is allowed.
#[test]
fn wrong_settings_are_refused() {
    let scene = Scene::new();
    let place = ["site", "edge", "input"];
    for (input, said) in [
        (syslog("{upd: {listening_addr: \"127.0.0.1:5514\"}}"), ["config.upd", "`udp`"]),
        (
            syslog("{tcp: {listening_addr: \"127.0.0.1:5514\", framing: lines}}"),
            ["config.tcp.framing", "octet_counting"],
        ),
        (syslog("{tcp: {listening_addr: 5514}}"), ["config.tcp.listening_addr", "IP:PORT"]),
        (
            syslog("{udp: {listening_addr: \"127.0.0.1:5514\"}, max_message_size: 0}"),
            ["config.max_message_size", "16777216"],
        ),
        (syslog("{udp: {listening_addr: \"127.0.0.1:5514\"}, timezone: Mars}"), ["config.timezone", "Europe/Paris"]),
        (
            syslog("{udp: {listening_addr: \"127.0.0.1:5514\"}, batch: {max_messages: 0}}"),
            ["batch.max_messages", "1 to"],
        ),
        (syslog("{}"), ["nothing to receive from", "`replay`"]),
        (ipfix("{udp: {listening_addr: \"127.0.0.1:4739\", port: 1}}"), ["config.udp.port", "`listening_addr`"]),
        (ipfix("{udp: {listening_addr: \"127.0.0.1:4739\"}, max_templates: lots}"), ["config.max_templates", "usize"]),
        (ipfix("{replay: {path: \"\"}}"), ["config.replay.path", "capture"]),
        (ipfix("{replay: {path: x, rate: fast}}"), ["config.replay.rate", "unlimited"]),
    ] {
        assert_refused(&scene, &config(&input, NOOP), &[&place[..], &said[..]].concat());
    }
}

/// The same for the processor and the exporter.
#[test]
fn wrong_settings_of_other_nodes_are_refused() {
    let scene = Scene::new();
    let input = syslog("{udp: {listening_addr: \"127.0.0.1:5514\"}}");
    let measures = "measures: [{name: a, value_from: \"attribute:x\"}]";
    for (settings, said) in [
        (format!("{{window: {{tumbling: 5s, count: 3}}, {measures}}}"), ["config.window", "either"]),
        (format!("{{window: {{tumbling: soon}}, {measures}}}"), ["config.window.tumbling", "soon"]),
        (format!("{{window: {{count: 3}}, quantiles: [1.5], {measures}}}"), ["config.quantiles", "0 to 1"]),
        (format!("{{window: {{count: 3}}, method: tdigest, {measures}}}"), ["config.method", "exact"]),
        ("{window: {count: 3}, measures: [{name: a}]}".to_owned(), ["config.measures[0]", "value_from"]),
    ] {
        let yaml = config(&input, NOOP).replace(
            "        connections: [{from: input, to: output}]",
            &format!(
                "          middle: {}\n        connections: [{{from: input, to: middle}}, {{from: middle, to: output}}]",
                quantile(&settings)
            ),
        );
        assert_refused(&scene, &yaml, &["site", "edge", "middle", said[0], said[1]]);
    }
    let table = "{type: \"urn:catchment:exporter:console_table\", config: {format: csv}}";
    assert_refused(&scene, &config(&input, table), &["site", "edge", "output", "config.format", "lines"]);
}

/// A node that is not linked in, a file that is no configuration, and one that is not there.
#[test]
fn wrong_files_are_refused() {
    let scene = Scene::new();
    let input = syslog("{udp: {listening_addr: \"127.0.0.1:5514\"}}");
    let unknown = "{type: \"urn:catchment:exporter:carrier_pigeon\", config: {}}";
    assert_refused(&scene, &config(&input, unknown), &["site", "edge", "output", "carrier_pigeon"]);
    assert_refused(&scene, "version: [", &["config.yaml"]);
    assert_refused(&scene, "", &["config.yaml"]);
    let missing = scene.path("missing.yaml");
    let ended = run(catchment().arg("validate").arg(&missing));
    assert!(ended.expect_code(2).stderr.contains("missing.yaml"), "{}", ended.stderr);
}

/// Starts the engine and waits for it to give up: a non-zero exit with a message that says all of `said`.
fn assert_fails(scene: &Scene, yaml: &str, said: &[&str]) {
    let file = scene.write("config.yaml", yaml);
    let _ = run(catchment().arg("validate").arg(&file)).expect_code(0);
    let ended: Ended = Process::start(catchment().arg("--config").arg(&file)).wait();
    assert!(ended.code.is_some_and(|code| code != 0), "{:?}: {}", ended.code, ended.stderr);
    let last = ended.stderr.lines().last().unwrap_or_default();
    for part in said {
        assert!(last.contains(part), "`{part}` is not in the last line: {last}");
    }
}

fn replay(node: fn(&str) -> String, path: &Path) -> String {
    config(&node(&format!("{{replay: {{path: \"{}\"}}}}", path.display())), NOOP)
}

/// A replay file that is missing, or a folder, ends the engine and is named.
#[test]
fn replay_files_that_cannot_be_read_are_named() {
    let scene = Scene::new();
    assert_fails(&scene, &replay(syslog, &scene.path("missing.log")), &["missing.log", "config.replay"]);
    assert_fails(&scene, &replay(ipfix, &scene.path("")), &[&scene.path("").display().to_string(), "config.replay"]);
}

/// So does an empty file, which holds nothing to replay, for either receiver.
#[test]
fn empty_replay_files_are_named() {
    let scene = Scene::new();
    let empty = scene.write("empty.pcap", "");
    assert_fails(&scene, &replay(ipfix, &empty), &["empty.pcap", "config.replay"]);
    assert_fails(&scene, &replay(syslog, &empty), &["empty.pcap", "config.replay"]);
}

/// Text where flows are wanted is no input for the flow receiver.
#[test]
fn text_is_no_input_for_the_flow_receiver() {
    let scene = Scene::new();
    let text = scene.write("lines.log", "<13>Jan  1 00:00:00 host app: text\n");
    assert_fails(&scene, &replay(ipfix, &text), &["lines.log", "config.replay"]);
}

/// A TCP port that another process has.
#[test]
fn a_used_tcp_port_is_named() {
    let scene = Scene::new();
    let other = TcpListener::bind(local(0)).expect("a free port");
    let address = other.local_addr().expect("an address").to_string();
    let input = syslog(&format!("{{tcp: {{listening_addr: \"{address}\"}}}}"));
    assert_fails(&scene, &config(&input, NOOP), &[&address, "tcp", "in use"]);
}

/// A UDP port that another process has.
#[test]
fn a_used_udp_port_is_named() {
    let scene = Scene::new();
    let other = UdpSocket::bind(local(0)).expect("a free port");
    let address = other.local_addr().expect("an address").to_string();
    let input = ipfix(&format!("{{udp: {{listening_addr: \"{address}\"}}}}"));
    assert_fails(&scene, &config(&input, NOOP), &[&address, "udp", "in use"]);
}
