//! Images written by Apache DataSketches in C++, and damaged ones.

use std::fs;
use std::path::{Path, PathBuf};

use catchment_quantile::{Criterion, KllSketch, SketchImageError};
use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn image(name: &str) -> Vec<u8> {
    fs::read(data(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn cases() -> Vec<Value> {
    let text = fs::read_to_string(data("ref.json")).expect("ref.json");
    let facts: Value = serde_json::from_str(&text).expect("JSON");
    facts["cases"].as_array().expect("cases").clone()
}

/// A number of `ref.json`.
fn double(value: &Value) -> f64 {
    match value.as_str() {
        Some(text) => text.parse().expect("inf or -inf"),
        None => value.as_f64().expect("number"),
    }
}

fn doubles(value: &Value) -> Vec<f64> {
    value.as_array().expect("array").iter().map(double).collect()
}

fn read(image: &[u8], float: bool) -> Result<KllSketch, SketchImageError> {
    if float { KllSketch::from_float_bytes(image, 1) } else { KllSketch::from_bytes(image, 1) }
}

fn write(sketch: &KllSketch, float: bool) -> Vec<u8> {
    if float { sketch.to_float_bytes() } else { sketch.to_bytes() }
}

/// Every image gives the numbers that its writer gave, and the same bytes when written again,
/// also after it was queried.
#[test]
fn reference_images_give_the_reference_facts() {
    let cases = cases();
    assert_eq!(cases.len(), 64);
    for case in &cases {
        let file = case["file"].as_str().expect("file");
        let float = case["type"] == "float";
        let bytes = image(file);
        let sketch = read(&bytes, float).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(case["n"], sketch.n(), "{file}");
        assert_eq!(case["k"], sketch.k(), "{file}");
        assert_eq!(case["num_retained"], sketch.num_retained(), "{file}");
        assert_eq!(case["empty"], sketch.is_empty(), "{file}");
        assert_eq!(case["estimation_mode"], sketch.is_estimation_mode(), "{file}");
        for (name, whole) in [("rank_error_single", false), ("rank_error_pmf", true)] {
            let error = sketch.normalized_rank_error(whole);
            assert!((double(&case[name]) - error).abs() < 1e-12, "{file} {name}");
        }
        let view = sketch.sorted_view();
        if sketch.is_empty() {
            assert_eq!((sketch.min(), sketch.max()), (None, None), "{file}");
        } else {
            check_queries(case, &sketch, file);
        }
        assert_eq!(view.cumulative_weights().last().copied().unwrap_or(0), sketch.n(), "{file}");
        assert_eq!(write(&sketch, float), bytes, "{file}");
    }
}

fn check_queries(case: &Value, sketch: &KllSketch, file: &str) {
    let view = sketch.sorted_view();
    assert_eq!(sketch.min(), Some(double(&case["min"])), "{file}");
    assert_eq!(sketch.max(), Some(double(&case["max"])), "{file}");
    let ranks = doubles(&case["ranks"]);
    let last = ranks.len() - 1;
    for (name, criterion) in
        [("quantiles_inclusive", Criterion::Inclusive), ("quantiles_exclusive", Criterion::Exclusive)]
    {
        let expected = doubles(&case[name]);
        let actual = view.quantiles(&ranks, criterion).expect("valid ranks");
        assert_eq!(actual[1..last], expected[1..last], "{file} {name}");
        assert_eq!(view.values().first(), expected.first(), "{file} {name}");
        assert_eq!(view.values().last(), expected.last(), "{file} {name}");
        assert_eq!(actual[0], double(&case["min"]), "{file} {name}");
        assert_eq!(actual[last], double(&case["max"]), "{file} {name}");
    }
    for triple in case["rank_inclusive_of"].as_array().expect("triples") {
        let triple = doubles(triple);
        let of = |criterion| sketch.rank(triple[0], criterion).expect("not empty");
        assert!((of(Criterion::Inclusive) - triple[1]).abs() < 1e-12, "{file}");
        assert!((of(Criterion::Exclusive) - triple[2]).abs() < 1e-12, "{file}");
    }
    if let Some(items) = case["items"].as_array() {
        let values: Vec<f64> = items.iter().map(|item| double(&item[0])).collect();
        assert_eq!(view.values(), values, "{file}");
    }
}

/// The part of a full image that depends on `n` and `k` only: header and level offsets.
fn shape(image: &[u8]) -> &[u8] {
    &image[..20 + 4 * usize::from(image[18])]
}

fn scrambled(n: u64) -> Vec<f64> {
    (0..n).map(|i| (i * 7_919 % n) as f64).collect()
}

/// The same number of updates leads to the level sizes of the C++ library.
#[test]
fn levels_are_those_of_the_reference() {
    for (k, name, n) in [
        (8, "n10000", 10_000),
        (200, "two", 2),
        (200, "fullk", 200),
        (200, "kplus1", 201),
        (200, "n1000", 1000),
        (200, "n65536", 65_536),
        (200, "n1000000", 1_000_000),
        (400, "fullk", 400),
        (400, "kplus1", 401),
        (400, "n1000", 1000),
        (400, "n65536", 65_536),
        (400, "n1000000", 1_000_000),
    ] {
        let reference = image(&format!("ref-double-k{k}-{name}.bin"));
        let mut sketch = KllSketch::new(k, 5).expect("k");
        sketch.update_slice(&scrambled(n));
        assert_eq!(shape(&sketch.to_bytes()), shape(&reference), "k={k} {name}");
    }
}

/// Merging leads to the level sizes of the C++ library, with equal and with different k.
#[test]
fn merged_levels_are_those_of_the_reference() {
    for k in [200, 400] {
        let name = |part| format!("ref-double-k{k}-bench-{part}.bin");
        let mut sketch = KllSketch::from_bytes(&image(&name("a")), 1).expect("a");
        let other = KllSketch::from_bytes(&image(&name("b")), 2).expect("b");
        sketch.merge(&other).expect("small counts");
        assert_eq!(shape(&sketch.to_bytes()), shape(&image(&name("merged"))));
    }
    let values: Vec<f64> = (0..50_000).map(f64::from).collect();
    let mut sketch = KllSketch::new(400, 1).expect("k");
    sketch.update_slice(&values[..20_000]);
    let mut other = KllSketch::new(200, 2).expect("k");
    other.update_slice(&values[20_000..]);
    sketch.merge(&other).expect("small counts");
    assert_eq!(sketch.min_k(), 200);
    assert_eq!(shape(&sketch.to_bytes()), shape(&image("ref-double-k400-mixedk.bin")));
}

/// Every damaged image is refused, and its error says where.
#[test]
fn damaged_images_are_refused() {
    let mut seen = 0;
    for entry in fs::read_dir(data("hostile")).expect("hostile") {
        let path = entry.expect("entry").path();
        let bytes = fs::read(&path).expect("readable");
        let error = KllSketch::from_bytes(&bytes, 1).expect_err(&path.display().to_string());
        let text = error.to_string();
        assert!(text.contains("must"), "{}: {text}", path.display());
        seen += 1;
    }
    assert_eq!(seen, 25);
    let floats = image("hostile/floatasdouble.bin");
    assert!(KllSketch::from_float_bytes(&floats, 1).is_ok());
}

/// A cut at any place is refused.
#[test]
fn every_prefix_is_refused() {
    for name in ["n1000", "two", "single", "empty"] {
        let bytes = image(&format!("ref-double-k200-{name}.bin"));
        for length in 0..bytes.len() {
            let cut = KllSketch::from_bytes(&bytes[..length], 1);
            assert!(cut.is_err(), "{name} cut at {length}");
        }
    }
}

/// Each field that is wrong is named with its place.
#[test]
fn errors_name_the_field() {
    let valid = image("ref-double-k200-n1000.bin");
    for (offset, byte, field) in [
        (0, 4, "preamble words"),
        (1, 3, "serial version"),
        (2, 14, "family"),
        (3, 8, "flags"),
        (3, 5, "flags"),
        (6, 9, "smallest level capacity"),
        (17, 1, "smallest k"),
        (18, 0, "levels"),
    ] {
        let mut bytes = valid.clone();
        bytes[offset] = byte;
        let error = KllSketch::from_bytes(&bytes, 1).expect_err(field).to_string();
        assert!(error.contains(field), "{field}: {error}");
    }
    // Level 0 of this image does not ascend, so it must not be called sorted.
    let mut bytes = valid;
    bytes[3] = 2;
    let error = KllSketch::from_bytes(&bytes, 1).expect_err("sorted flag");
    assert!(error.to_string().contains("ascend"), "{error}");
}

/// One item written like many, as older versions did, is the same sketch as one item.
#[test]
fn older_form_of_a_single_item_is_read() {
    let single = image("ref-double-k200-single.bin");
    let item = &single[8..];
    let mut older = vec![5, 1, 15, 0, 200, 0, 8, 0];
    older.extend_from_slice(&1u64.to_le_bytes());
    older.extend_from_slice(&[200, 0, 1, 0]);
    older.extend_from_slice(&199u32.to_le_bytes());
    for _ in ["minimum", "maximum", "item"] {
        older.extend_from_slice(item);
    }
    let sketch = KllSketch::from_bytes(&older, 1).expect("older form");
    assert_eq!((sketch.n(), sketch.min(), sketch.max()), (1, Some(3.25), Some(3.25)));
    assert_eq!(sketch.to_bytes(), single);
}

/// Images of other implementations, where there are any: all are read, give exact extremes, and
/// the same bytes when written again.
#[test]
fn images_of_other_implementations() {
    let Ok(folder) = std::env::var("CATCHMENT_QUANTILE_REFERENCE") else {
        println!("skipped: CATCHMENT_QUANTILE_REFERENCE names no folder with interop/*.sk");
        return;
    };
    let mut seen = 0;
    for entry in fs::read_dir(Path::new(&folder).join("interop")).expect("interop") {
        let path = entry.expect("entry").path();
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix("kll_").filter(|name| name.ends_with(".sk")) else {
            continue;
        };
        seen += 1;
        let bytes = fs::read(&path).expect("readable");
        let float = name.contains("_float_");
        if name == "kll_double_n1.sk" {
            assert!(read(&bytes, float).is_err(), "{name} has no item");
            continue;
        }
        let sketch = read(&bytes, float).unwrap_or_else(|error| panic!("{name}: {error}"));
        if name.contains("one_item") {
            assert_eq!(sketch.n(), 1, "{name}");
            continue;
        }
        assert_eq!(write(&sketch, float), bytes, "{name}");
        let n: u64 = rest.split(['_', 'n']).find_map(|part| part.parse().ok()).expect("a number in the name");
        assert_eq!(sketch.n(), n, "{name}");
        if n > 0 {
            let max = sketch.max().expect("not empty");
            assert!(max == n as f64 || max == (n - 1) as f64, "{name}: {max}");
            let median = sketch.quantile(0.5, Criterion::Inclusive).expect("not empty");
            let error = (median / n as f64 - 0.5).abs();
            assert!(n < 10 || error < 0.02, "{name}: {median}");
        }
    }
    assert!(seen > 30, "{seen} images");
}
