//! Every shipped configuration runs, and every one in the documentation is valid.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use catchment_tests::{Engine, Scene, Sink, catchment, repository, run, wait_until, with_named_ports};

/// What a shipped configuration does in its first half minute.
struct Shipped {
    file: &'static str,
    /// What it is sent over TCP, to this port.
    sent: Option<(&'static str, &'static [u8])>,
    /// What it prints.
    prints: &'static [&'static str],
    /// What is in a record that it delivers to the backend on port 4317 or 4318.
    delivers: Option<&'static str>,
    /// What the backend on port 4317 speaks.
    backend: Backend,
}

enum Backend {
    Otap,
    Otlp,
}

/// An IPFIX message: a template of source address and octets, and one record.
#[rustfmt::skip]
const FLOW: &[u8] = &[
    0, 10, 0, 44, 0x6a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0, 2, 0, 16, 1, 0, 0, 2, 0, 8, 0, 4, 0, 1, 0, 4,
    1, 0, 0, 12, 192, 0, 2, 77, 0, 0, 3, 232,
];

/// An OTLP request with one log record.
const REQUEST: &[u8] = b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n\
    Content-Length: 25\r\n\r\n\x0a\x17\x12\x15\x12\x13\x2a\x11\x0a\x0fhello over HTTP";

const SHIPPED: &[Shipped] = &[
    Shipped {
        file: "ipfix.yaml",
        sent: Some(("p4739", FLOW)),
        prints: &[],
        delivers: Some("192.0.2.77"),
        backend: Backend::Otap,
    },
    Shipped {
        file: "lanes-durable.yaml",
        sent: Some(("p5514", b"<13>Nov 30 10:00:00 host app: kept on disk\n")),
        prints: &[],
        delivers: Some("kept on disk"),
        backend: Backend::Otap,
    },
    Shipped {
        file: "lanes-ipfix.yaml",
        sent: Some(("p4739", FLOW)),
        prints: &[],
        delivers: Some("192.0.2.77"),
        backend: Backend::Otap,
    },
    Shipped {
        file: "lanes-otlp.yaml",
        sent: Some(("p14318", REQUEST)),
        prints: &[],
        delivers: Some("hello over HTTP"),
        backend: Backend::Otlp,
    },
    Shipped {
        file: "lanes-syslog.yaml",
        sent: Some(("p5514", b"<13>Nov 30 10:00:00 host app: hello from a lane\n")),
        prints: &[],
        delivers: Some("hello from a lane"),
        backend: Backend::Otlp,
    },
    Shipped { file: "quantile-branch-otlp.yaml", sent: None, prints: &[], delivers: None, backend: Backend::Otap },
    Shipped { file: "quantile-branch.yaml", sent: None, prints: &[], delivers: None, backend: Backend::Otap },
    Shipped { file: "quantile-estimate-otlp.yaml", sent: None, prints: &[], delivers: None, backend: Backend::Otap },
    Shipped { file: "quantile-estimate.yaml", sent: None, prints: &[], delivers: None, backend: Backend::Otap },
    Shipped { file: "quantile-merge-otlp.yaml", sent: None, prints: &[], delivers: None, backend: Backend::Otap },
    Shipped { file: "quantile-merge.yaml", sent: None, prints: &[], delivers: None, backend: Backend::Otap },
    Shipped {
        file: "quickstart.yaml",
        sent: None,
        prints: &["flow.bytes", "http.response_time"],
        delivers: None,
        backend: Backend::Otap,
    },
    Shipped {
        file: "sampling.yaml",
        sent: None,
        prints: &["http.response_time"],
        delivers: None,
        backend: Backend::Otap,
    },
    Shipped {
        file: "sonic.yaml",
        sent: None,
        prints: &["pg.occupancy", "pg.watermark", "Ethernet0|7"],
        delivers: None,
        backend: Backend::Otap,
    },
    Shipped {
        file: "syslog.yaml",
        sent: Some(("p5514", b"<13>Nov 30 10:00:00 host app: hello from here\n")),
        prints: &[],
        delivers: Some("hello from here"),
        backend: Backend::Otap,
    },
];

const SOON: Duration = Duration::from_secs(30);

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("a folder can be read").path()) {
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|has| has == extension) {
            found.push(path);
        }
    }
    found.sort();
}

fn shipped() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&repository().join("configs"), "yaml", &mut found);
    assert!(!found.is_empty(), "no configuration is shipped");
    found
}

/// `catchment validate` finds nothing wrong with what is shipped.
#[test]
fn shipped_configurations_are_valid() {
    let _scene = Scene::new();
    for file in shipped() {
        let ended = run(catchment().arg("validate").arg(&file));
        assert!(ended.expect_code(0).stdout.starts_with("valid: "), "{}", ended.stdout);
    }
}

/// Each starts, prints and delivers what it promises, and drains with all accounted for.
#[test]
fn shipped_configurations_run() {
    for file in shipped() {
        let scene = Scene::new();
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = std::fs::read_to_string(&file).expect("it can be read");
        // What is kept on disk is kept for this run.
        let text = text.replace("/tmp/catchment-buffer", scene.path("buffer").to_str().expect("a path"));
        let promised = SHIPPED.iter().find(|known| known.file == name);
        let Shipped { sent, prints, delivers, backend: speaks, .. } =
            promised.unwrap_or_else(|| panic!("say in this test what {name} does"));
        let backend = Sink::start(&scene);
        let port = match speaks {
            Backend::Otap => backend.otap(),
            Backend::Otlp => backend.otlp(),
        };
        let engine =
            Engine::start(&scene, &with_named_ports(&text), &[("p4317", port), ("p4318", backend.otlp_http())]);
        let began = Instant::now();
        // A receiver may give up what its sender does not wait for.
        let _connection = sent.map(|(port, bytes)| {
            engine.wait_listening(port);
            let mut connection = TcpStream::connect(engine.address(port)).expect("it listens");
            connection.write_all(bytes).expect("it reads");
            connection
        });
        for expected in *prints {
            wait_until(&format!("{name} prints {expected}"), || engine.stdout().contains(expected));
        }
        if let Some(expected) = delivers {
            backend.wait_for_record(expected, |record| record.to_string().contains(expected));
        }
        assert!(began.elapsed() < SOON, "{name} took {:?}", began.elapsed());
        let stopped = engine.stop();
        let report = stopped.expect_clean();
        assert!(report.names().next().is_some(), "{name}: {report:?}");
    }
}

/// A fenced block of YAML and where it begins.
struct Block {
    place: String,
    is_fragment: bool,
    text: String,
}

fn blocks(file: &Path, found: &mut Vec<Block>) {
    let text = std::fs::read_to_string(file).expect("it can be read");
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start();
        match &mut open {
            Some(_) if fence.starts_with("```") => found.extend(open.take()),
            Some(block) => block.text.push_str(&format!("{line}\n")),
            None => {
                let Some(info) = fence.strip_prefix("```yaml") else { continue };
                let place = format!("{}:{}", file.display(), number + 1);
                open = Some(Block { place, is_fragment: info.contains("fragment"), text: String::new() });
            }
        }
    }
    assert!(open.is_none(), "{}: a fence is not closed", file.display());
}

/// Whole configurations in the documentation are valid; blocks that are none say so by `fragment` behind `yaml`.
#[test]
fn documented_configurations_are_valid() {
    let mut pages = vec![repository().join("README.md")];
    files(&repository().join("docs"), "md", &mut pages);
    let mut nodes = Vec::new();
    files(&repository().join("crates/nodes/src"), "md", &mut nodes);
    pages.extend(nodes.into_iter().filter(|path| path.ends_with("README.md")));
    let mut found = Vec::new();
    for page in &pages {
        blocks(page, &mut found);
    }
    assert!(!found.is_empty(), "no YAML in {pages:?}");
    let scene = Scene::new();
    for block in found {
        let is_whole = block.text.contains("version: otel_dataflow");
        assert!(is_whole || block.is_fragment, "{}: neither a whole configuration nor a `fragment`", block.place);
        if is_whole {
            let file = scene.write("block.yaml", &block.text);
            let ended = run(catchment().arg("validate").arg(&file));
            assert_eq!(ended.code, Some(0), "{}: {}", block.place, ended.stderr);
        }
    }
}
