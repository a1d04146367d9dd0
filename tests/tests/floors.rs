//! Who may depend on whom: the floors of docs/architecture.md, read from the manifests.

use std::collections::BTreeMap;
use std::process::Command;

use catchment_tests::repository;
use serde_json::Value;

/// Bytes in, borrowed fields or numbers out; they know neither Arrow nor a runtime nor the engine.
const GROUND: &[&str] =
    &["catchment-capture", "catchment-syslog", "catchment-ipfix", "catchment-quantile", "catchment-sampling"];
const COLUMNS: &str = "catchment-columns";
const DELIVERY: &str = "catchment-delivery";
const ENGINE_PREFIX: &str = "otel-arrow-dfe-";
/// Arithmetic that is published with the engine, without dependencies of its own: bucket indexes of histograms.
const ARITHMETIC: &str = "otel-arrow-dfe-expohisto";
/// The engine's data model, which is not the engine.
const DATA_MODEL: &[&str] = &["otel-arrow-dfe-pdata", "otel-arrow-dfe-pdata-views"];

#[derive(Debug, Default)]
struct Crate {
    manifest: String,
    normal: Vec<String>,
    all: Vec<String>,
}

fn crates() -> BTreeMap<String, Crate> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(repository())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    let found: BTreeMap<_, _> = packages
        .iter()
        .map(|package| {
            let path = text(&package["manifest_path"]);
            let manifest = std::fs::read_to_string(&path).expect("a manifest can be read");
            let mut one = Crate { manifest, ..Crate::default() };
            for dependency in package["dependencies"].as_array().expect("dependencies") {
                let name = text(&dependency["name"]);
                if dependency["kind"].is_null() {
                    one.normal.push(name.clone());
                }
                one.all.push(name);
            }
            (text(&package["name"]), one)
        })
        .collect();
    assert!(found.contains_key("catchment"), "{:?}", found.keys());
    found
}

/// Crates of this workspace that `name` may use in normal builds; `None` for a crate that has no floor.
fn may_use(name: &str) -> Option<Vec<&'static str>> {
    let upto = |more: &[&'static str]| GROUND.iter().chain(more).copied().collect::<Vec<_>>();
    Some(match name {
        ground if GROUND.contains(&ground) => Vec::new(),
        COLUMNS => upto(&[]),
        DELIVERY => upto(&[COLUMNS]),
        "catchment-nodes" => upto(&[COLUMNS, DELIVERY]),
        "catchment" => vec!["catchment-nodes"],
        "catchment-loadgen" => upto(&[COLUMNS]),
        "catchment-bench" => upto(&[COLUMNS, "catchment-loadgen"]),
        // Feeds arbitrary bytes to whatever reads them: parsers of the ground floor, and decode jobs and payloads.
        "catchment-fuzzing" => upto(&[COLUMNS]),
        "catchment-tests" => Vec::new(),
        _ => return None,
    })
}

fn is_runtime(name: &str) -> bool {
    name == "tokio" || name.starts_with("tokio-")
}

fn is_arrow(name: &str) -> bool {
    name == "arrow" || name.starts_with("arrow-")
}

/// Whether `name` may use a library from outside that not everybody may.
fn may_use_library(name: &str, library: &str) -> bool {
    let data_model = DATA_MODEL.contains(&library);
    match name {
        ground if GROUND.contains(&ground) => {
            let is_engine = library.starts_with(ENGINE_PREFIX) && library != ARITHMETIC;
            !is_runtime(library) && !is_arrow(library) && !is_engine
        }
        COLUMNS => !is_runtime(library) && (data_model || !library.starts_with(ENGINE_PREFIX)),
        DELIVERY | "catchment-loadgen" | "catchment-bench" => data_model || !library.starts_with(ENGINE_PREFIX),
        "catchment-nodes" => library != "otel-arrow-dfe-controller" && library != "otel-arrow-dfe-core-nodes",
        // The binary starts the engine; what nodes do with data is none of its business.
        "catchment" => !is_arrow(library) && !library.starts_with("otel-arrow-dfe-pdata"),
        _ => !library.starts_with(ENGINE_PREFIX) && !is_arrow(library) && !is_runtime(library),
    }
}

/// No crate uses one of a higher floor, or a library that its floor must not know.
#[test]
fn nothing_points_upwards() {
    for (name, one) in crates() {
        let allowed = may_use(&name).unwrap_or_else(|| panic!("{name} has no floor: add it here and to the docs"));
        for dependency in &one.normal {
            if dependency.starts_with("catchment") {
                assert!(allowed.contains(&dependency.as_str()), "{name} uses {dependency}, which is not below it");
            } else {
                assert!(may_use_library(&name, dependency), "{name} uses {dependency}, which its floor must not know");
            }
        }
    }
}

/// Tests of the ground floor stay on the ground floor.
#[test]
fn tests_of_the_ground_floor_stay_there() {
    for (name, one) in crates() {
        if GROUND.contains(&name.as_str()) {
            for dependency in one.all.iter().filter(|dependency| dependency.starts_with("catchment")) {
                assert!(GROUND.contains(&dependency.as_str()), "{name} is tested with {dependency}");
            }
        }
    }
}

/// Versions are in one place, and so are the lints.
#[test]
fn manifests_take_dependencies_and_lints_from_the_workspace() {
    for (name, one) in crates() {
        let mut section = "";
        let mut lints = false;
        for line in one.manifest.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with('[') {
                section = line;
            } else if section.ends_with("dependencies]") {
                assert!(line.contains("workspace = true"), "{name}, {section}: `{line}` is not `workspace = true`");
            } else if section.contains("dependencies.") {
                panic!("{name}: {section} stands alone, expected `workspace = true` in one line");
            } else if section == "[lints]" {
                lints |= line == "workspace = true";
            }
        }
        assert!(lints, "{name} has no `[lints] workspace = true`");
    }
}
