//! Log lines of the shapes that load tests of syslog receivers use.

use std::fmt::Write as _;

use serde::Deserialize;

use super::calendar::DateTime;
use super::corpus::{HOSTS, PRIORITIES, TEXTS};
use super::random::Random;
use super::{DEFAULT_START_UNIX_NANO, Source};

/// Number of different messages; lines are picked from them at random.
const POOL_SIZE: usize = 256;
/// Time from one message to the next where each has its own.
const STEP_NANO: u64 = 997_000;

/// Shape of the lines, with their mean size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum SyslogFormat {
    /// RFC 3164: PRI, BSD time stamp, host, tag, text; 248 bytes.
    Rfc3164,
    /// RFC 5424 without structured data; 260 bytes, 7 more with times of their own (microseconds).
    Rfc5424,
    /// RFC 5424 with MSGID and two SD-ELEMENTs; 341 bytes.
    Rfc5424Sd,
    /// CEF without any syslog header; 205 bytes.
    Cef,
}

/// How to make lines.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyslogOptions {
    /// Shape of the lines.
    pub format: SyslogFormat,
    /// Lines are a function of the seed and the other options.
    #[serde(default)]
    pub seed: u64,
    /// Gives every line its own time stamp, 997 microseconds after that of the line before. Without it all lines have
    /// the same, which flatters compression and dictionaries.
    #[serde(default)]
    pub fresh_time: bool,
    /// Time of the first line, in nanoseconds since the Unix epoch.
    #[serde(default = "default_start")]
    pub start_unix_nano: u64,
}

fn default_start() -> u64 {
    DEFAULT_START_UNIX_NANO
}

/// Endless log lines: a pool of 256 messages of 16 texts, 5 of them CEF, from 12 hosts, picked at random.
#[derive(Debug, Clone)]
pub struct SyslogLines {
    format: SyslogFormat,
    pool: Vec<Message>,
    random: Random,
    /// Time of the next line, where each has its own.
    next_unix_nano: Option<u64>,
}

/// A message of the pool around its time stamp.
#[derive(Debug, Clone)]
struct Message {
    before_stamp: String,
    /// The stamp that all lines share; empty in bare CEF.
    stamp: String,
    after_stamp: String,
}

impl SyslogLines {
    /// Lines of one frozen time.
    #[must_use]
    pub fn new(format: SyslogFormat, seed: u64) -> Self {
        Self::with_options(&SyslogOptions { format, seed, fresh_time: false, start_unix_nano: DEFAULT_START_UNIX_NANO })
    }

    /// Lines as `options` say.
    #[must_use]
    pub fn with_options(options: &SyslogOptions) -> Self {
        let mut random = Random::new(options.seed);
        let pool = (0..POOL_SIZE).map(|number| Message::new(options, number, &mut random)).collect();
        Self {
            format: options.format,
            pool,
            random,
            next_unix_nano: options.fresh_time.then_some(options.start_unix_nano),
        }
    }

    /// Sizes in bytes of the messages in the pool, of which every line is one.
    pub fn pool_sizes(&self) -> impl Iterator<Item = usize> {
        let stamp_bytes = self.next_unix_nano.map(|time| stamp(self.format, time, true).len());
        self.pool.iter().map(move |message| {
            message.before_stamp.len() + stamp_bytes.unwrap_or(message.stamp.len()) + message.after_stamp.len()
        })
    }
}

impl Source for SyslogLines {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let message = self.random.choice(&self.pool);
        out.extend_from_slice(message.before_stamp.as_bytes());
        match &mut self.next_unix_nano {
            Some(time) => {
                out.extend_from_slice(stamp(self.format, *time, true).as_bytes());
                *time = time.saturating_add(STEP_NANO);
            }
            None => out.extend_from_slice(message.stamp.as_bytes()),
        }
        out.extend_from_slice(message.after_stamp.as_bytes());
        Some(1)
    }
}

impl Message {
    fn new(options: &SyslogOptions, number: usize, random: &mut Random) -> Self {
        let time = options.start_unix_nano;
        let text = text(TEXTS[number % TEXTS.len()], time, random);
        let priority = PRIORITIES[number % PRIORITIES.len()];
        let host = HOSTS[number % HOSTS.len()];
        let (before_stamp, after_stamp) = match options.format {
            SyslogFormat::Rfc3164 => (format!("<{priority}>"), format!(" {host} loadgen: {text}")),
            SyslogFormat::Rfc5424 => {
                let after = format!(" {host} loadgen - - - {text}");
                (format!("<{priority}>1 "), after)
            }
            SyslogFormat::Rfc5424Sd => {
                let request = random.bits() as u32;
                let (event, zone, retry) = (number % TEXTS.len(), number % 4, number % 3);
                let octet = number % 250;
                let after = format!(
                    " {host} loadgen {number} EV{event} \
                     [ctx@32473 req=\"{request:08x}\" zone=\"z{zone}\" retry=\"{retry}\"]\
                     [origin ip=\"192.0.2.{octet}\"] {text}"
                );
                (format!("<{priority}>1 "), after)
            }
            SyslogFormat::Cef => {
                let cef = text.strip_prefix("NOT-").unwrap_or(&text);
                (String::new(), cef.to_owned())
            }
        };
        Self { before_stamp, stamp: stamp(options.format, time, false), after_stamp }
    }
}

/// Time stamp of a line. `fresh` stamps are as fine as the format allows.
fn stamp(format: SyslogFormat, unix_nano: u64, fresh: bool) -> String {
    let time = DateTime::new(unix_nano);
    match format {
        SyslogFormat::Rfc3164 => time.bsd(),
        SyslogFormat::Rfc5424 => time.rfc3339(fresh),
        SyslogFormat::Rfc5424Sd => time.rfc3339(true),
        SyslogFormat::Cef => String::new(),
    }
}

/// Fills in the placeholders of a text.
fn text(template: &str, unix_nano: u64, random: &mut Random) -> String {
    let severity = random.range(1, 10);
    let user = random.range(1_000, 9_999);
    let session = random.range(100_000, 999_999);
    let hash = random.bits();
    let count = random.range(1, 5_000);
    let mut out = String::with_capacity(256);
    for (index, part) in template.split(['{', '}']).enumerate() {
        // Text and placeholders take turns.
        if index % 2 == 0 {
            out.push_str(part);
            continue;
        }
        let written = match part {
            "a" | "b" => {
                let ranges = [(10, 172), (0, 255), (0, 255), (1, 254)];
                let [a, b, c, d] = ranges.map(|(low, high)| random.range(low, high));
                write!(out, "{a}.{b}.{c}.{d}")
            }
            "p" => write!(out, "{}", random.range(1_024, 65_535)),
            "q" => write!(out, "{}", random.range(80, 9_999)),
            "s" => write!(out, "sess-{session}"),
            "u" => write!(out, "u{user}"),
            "h" => write!(out, "{hash:016x}"),
            "n" => write!(out, "{count}"),
            "sev" => write!(out, "{severity}"),
            "ms" => write!(out, "{}", unix_nano / 1_000_000),
            _ => Ok(()),
        };
        debug_assert!(written.is_ok(), "writing to a string does not fail");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMATS: [(SyslogFormat, f64); 4] = [
        (SyslogFormat::Rfc3164, 248.0),
        (SyslogFormat::Rfc5424, 260.0),
        (SyslogFormat::Rfc5424Sd, 341.0),
        (SyslogFormat::Cef, 205.0),
    ];

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
        for (format, _) in FORMATS {
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
}
