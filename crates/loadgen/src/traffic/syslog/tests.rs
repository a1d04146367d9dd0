//! Sizes, shapes and repeatability of the lines.

use super::*;

/// Lines of a pool, with their mean size.
const FORMATS: [(SyslogFormat, f64); 4] = [
    (SyslogFormat::Rfc3164, 248.0),
    (SyslogFormat::Rfc5424, 260.0),
    (SyslogFormat::Rfc5424Sd, 341.0),
    (SyslogFormat::Cef, 205.0),
];

/// Lines without a pool, with their mean size when times are fresh.
const UNIQUE: [(SyslogFormat, f64); 3] =
    [(SyslogFormat::Rfc3164Unique, 136.0), (SyslogFormat::Rfc5424Unique, 184.0), (SyslogFormat::CefUnique, 247.0)];

fn lines(options: &SyslogOptions, count: usize) -> Vec<String> {
    let mut source = SyslogLines::with_options(options);
    let mut line = || {
        let mut out = Vec::new();
        assert_eq!(source.append_next(&mut out), Some(1));
        String::from_utf8(out).unwrap()
    };
    (0..count).map(|_| line()).collect()
}

fn options(format: SyslogFormat, fresh_time: bool) -> SyslogOptions {
    SyslogOptions { format, seed: 7, fresh_time, start_unix_nano: DEFAULT_START_UNIX_NANO }
}

/// The mean size of each format is the promised one within 2 %, whatever the seed, in the pool and in what is drawn
/// from it.
#[test]
fn mean_sizes() {
    for (format, expected) in FORMATS {
        for seed in 0..5 {
            let mut source = SyslogLines::new(format, seed);
            assert_eq!(source.pool_sizes().count(), 256);
            let pool_mean = source.pool_sizes().sum::<usize>() as f64 / 256.0;
            let mut drawn = Vec::new();
            for _ in 0..5_000 {
                source.append_next(&mut drawn);
            }
            let mean = drawn.len() as f64 / 5_000.0;
            for mean in [pool_mean, mean] {
                let error = (mean - expected).abs() / expected;
                assert!(error < 0.02, "{format:?} seed {seed}: mean {mean}");
            }
        }
    }
}

/// The same options give the same bytes; another seed, others.
#[test]
fn deterministic() {
    for (format, _) in FORMATS.into_iter().chain(UNIQUE) {
        let first = lines(&options(format, true), 300);
        assert_eq!(first, lines(&options(format, true), 300));
        let other = SyslogOptions { seed: 8, ..options(format, true) };
        assert_ne!(first, lines(&other, 300));
    }
}

/// Headers of each format, and no placeholder left over.
#[test]
fn shapes() {
    for (format, _) in FORMATS {
        for line in lines(&options(format, false), 500) {
            assert!(!line.contains(['{', '}', '\n', '\r']), "{line}");
            let (pri, rest) = line.split_once('>').unwrap_or(("", &line));
            let header = match format {
                SyslogFormat::Rfc3164 => "Jan  1 00:00:00 ",
                SyslogFormat::Rfc5424 => "1 2026-01-01T00:00:00Z ",
                SyslogFormat::Rfc5424Sd => "1 2026-01-01T00:00:00.000000Z ",
                SyslogFormat::Cef => "CEF:0|",
                _ => panic!("not of a pool"),
            };
            assert!(rest.starts_with(header), "{line}");
            if format != SyslogFormat::Cef {
                let number: u8 = pri[1..].parse().unwrap();
                assert!(PRIORITIES.contains(&number));
            }
        }
    }
    let with_data = lines(&options(SyslogFormat::Rfc5424Sd, false), 1).remove(0);
    assert!(with_data.contains("[ctx@32473 req=\""));
    assert!(with_data.contains("\"][origin ip=\"192.0.2."));
}

/// 5 of 16 texts are CEF, as they are in the pool.
#[test]
fn share_of_cef() {
    let source = SyslogLines::new(SyslogFormat::Rfc3164, 7);
    let cef = |message: &&Message| message.after_stamp.contains(": CEF:0|");
    assert_eq!(source.pool.iter().filter(cef).count(), 80);
}

/// Fresh times go up by one step a line, beyond the pool too; frozen ones stand still.
#[test]
fn fresh_time() {
    let fresh = lines(&options(SyslogFormat::Rfc5424, true), 1_000);
    let stamp = |line: &String| line.split(' ').nth(1).unwrap().to_owned();
    let stamps: Vec<_> = fresh.iter().map(stamp).collect();
    assert_eq!(stamps[0], "2026-01-01T00:00:00.000000Z");
    assert_eq!(stamps[1], "2026-01-01T00:00:00.000997Z");
    assert_eq!(stamps[999], "2026-01-01T00:00:00.996003Z");
    assert!(stamps.is_sorted_by(|earlier, later| earlier < later));
    let frozen = lines(&options(SyslogFormat::Rfc5424, false), 100);
    assert!(frozen.iter().all(|line| stamp(line) == stamp(&frozen[0])));
}

/// The sizes that are promised within 1 %, whatever the seed.
#[test]
fn unique_mean_sizes() {
    for (format, expected) in UNIQUE {
        for seed in 0..3 {
            let lines = lines(&SyslogOptions { seed, ..options(format, true) }, 5_000);
            let mean = lines.iter().map(String::len).sum::<usize>() as f64 / 5_000.0;
            assert!((mean - expected).abs() / expected < 0.01, "{format:?} seed {seed}: mean {mean}");
        }
        assert_eq!(SyslogLines::new(format, 1).pool_sizes().count(), 0);
    }
}

/// No line comes twice even with one frozen time, and every text has its header and nothing left to fill in.
#[test]
fn unique_lines() {
    for (format, _) in UNIQUE {
        let lines = lines(&options(format, false), 20_000);
        let different: std::collections::HashSet<&String> = lines.iter().collect();
        assert_eq!(different.len(), lines.len(), "{format:?}");
        let after_pri = match format {
            SyslogFormat::Rfc5424Unique => "1 2026-01-01T00:00:00Z ",
            _ => "Jan  1 00:00:00 ",
        };
        for line in &lines {
            assert!(line.split_once('>').unwrap().1.starts_with(after_pri), "{line}");
            assert!(!line.contains(['{', '\n', '\r']), "{line}");
            assert_eq!(line.contains(" CEF:0|"), format == SyslogFormat::CefUnique, "{line}");
        }
    }
}
