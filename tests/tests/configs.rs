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
    /// What is in a record that it delivers to the backend on port 4317.
    delivers: Option<&'static str>,
}

/// An IPFIX message: a template of source address and octets, and one record.
#[rustfmt::skip]
const FLOW: &[u8] = &[
    0, 10, 0, 44, 0x6a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0, 2, 0, 16, 1, 0, 0, 2, 0, 8, 0, 4, 0, 1, 0, 4,
    1, 0, 0, 12, 192, 0, 2, 77, 0, 0, 3, 232,
];

const SHIPPED: &[Shipped] = &[
    Shipped { file: "ipfix.yaml", sent: Some(("p4739", FLOW)), prints: &[], delivers: Some("192.0.2.77") },
    Shipped { file: "quantile-branch-otlp.yaml", sent: None, prints: &[], delivers: None },
    Shipped { file: "quantile-branch.yaml", sent: None, prints: &[], delivers: None },
    Shipped { file: "quantile-estimate-otlp.yaml", sent: None, prints: &[], delivers: None },
    Shipped { file: "quantile-estimate.yaml", sent: None, prints: &[], delivers: None },
    Shipped { file: "quantile-merge-otlp.yaml", sent: None, prints: &[], delivers: None },
    Shipped { file: "quantile-merge.yaml", sent: None, prints: &[], delivers: None },
    Shipped { file: "quickstart.yaml", sent: None, prints: &["flow.bytes", "http.response_time"], delivers: None },
    Shipped {
        file: "sonic.yaml",
        sent: None,
        prints: &["pg.occupancy", "pg.watermark", "Ethernet0|7"],
        delivers: None,
    },
    Shipped {
        file: "syslog.yaml",
        sent: Some(("p5514", b"<13>Nov 30 10:00:00 host app: hello from here\n")),
        prints: &[],
        delivers: Some("hello from here"),
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
        let promised = SHIPPED.iter().find(|known| known.file == name);
        let Shipped { sent, prints, delivers, .. } =
            promised.unwrap_or_else(|| panic!("say in this test what {name} does"));
        let backend = Sink::start(&scene);
        let engine = Engine::start(&scene, &with_named_ports(&text), &[("p4317", backend.otap())]);
        let began = Instant::now();
        if let Some((port, bytes)) = sent {
            engine.wait_listening(port);
            let mut connection = TcpStream::connect(engine.address(port)).expect("it listens");
            connection.write_all(bytes).expect("it reads");
        }
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
