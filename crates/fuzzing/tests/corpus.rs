//! Replays the corpus of the fuzz targets.

use std::collections::BTreeSet;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

use catchment_fuzzing::TARGETS;

/// Largest file, and largest size of all files together: the corpus is part of the repository.
const MAX_FILE_BYTES: u64 = 4_096;
const MAX_CORPUS_BYTES: u64 = 500_000;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The paths in a folder, in order.
fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn names(folder: &Path) -> BTreeSet<String> {
    paths(folder).iter().map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

/// No file of the corpus makes its target panic.
fn replay(target: &str) {
    let (_, body) = TARGETS.iter().find(|(name, _)| *name == target).expect("a target");
    let files = paths(&fuzz().join("corpus").join(target));
    assert!(!files.is_empty(), "no corpus for {target}");
    for file in files {
        let input = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let outcome = panic::catch_unwind(|| body(&input));
        assert!(outcome.is_ok(), "{target} panicked on {}", file.display());
    }
}

macro_rules! replays {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                replay(stringify!($target));
            }
        )*

        /// Every target has a test above, a corpus and a driver.
        #[test]
        fn targets_are_complete() {
            let tested = BTreeSet::from([$(stringify!($target).to_owned()),*]);
            let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(tested, targets);
            assert_eq!(names(&fuzz().join("corpus")), targets);
            assert_eq!(names(&fuzz().join("fuzz_targets")), targets);
        }
    };
}

replays! {
    capture_reader
    exact_run
    flow_encoded
    flow_job
    flow_metrics
    ipfix_admit
    ipfix_collector
    ipfix_lists
    ipfix_options
    ipfix_stream
    ipfix_template_cache
    kll_asapv1
    kll_image
    kll_operations
    quantile_carrier
    quantile_exchange
    quantile_otlp
    sonic_admit
    sonic_encoded
    syslog_encoded
    syslog_framing
    syslog_job
    syslog_parse
    syslog_sampling
}

/// No input makes a target panic because it is short.
#[test]
fn shortest_inputs() {
    for (_, body) in TARGETS {
        body(&[]);
        for byte in 0..=255 {
            body(&[byte]);
            body(&[byte; 5]);
        }
    }
}

/// The corpus stays small.
#[test]
fn sizes() {
    let mut total = 0;
    for file in paths(&fuzz().join("corpus")).iter().flat_map(|folder| paths(folder)) {
        let bytes = fs::metadata(&file).expect("a file").len();
        assert!(bytes <= MAX_FILE_BYTES, "{} has {bytes} bytes", file.display());
        total += bytes;
    }
    assert!(total <= MAX_CORPUS_BYTES, "{total} bytes");
}
