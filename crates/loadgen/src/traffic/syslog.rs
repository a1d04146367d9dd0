//! Log lines of the shapes that load tests of syslog receivers use.

use std::fmt::Write as _;

use serde::Deserialize;

use super::calendar::DateTime;
use super::corpus::{CEF_EVENTS, EVENTS, HOSTS, PRIORITIES, SHORT_EVENTS, TEXTS};
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
    /// RFC 3164 with a process id; no text comes twice; 136 bytes.
    Rfc3164Unique,
    /// RFC 5424 without structured data; no text comes twice; 184 bytes with times of their own, else 7 fewer.
    Rfc5424Unique,
    /// CEF after an RFC 3164 time stamp and host; no text comes twice; 247 bytes.
    CefUnique,
}

impl SyslogFormat {
    /// Whether no text comes twice.
    #[must_use]
    pub fn is_unique(self) -> bool {
        matches!(self, Self::Rfc3164Unique | Self::Rfc5424Unique | Self::CefUnique)
    }

    /// The texts that are filled in.
    fn texts(self) -> &'static [&'static str] {
        match self {
            Self::Rfc3164 | Self::Rfc5424 | Self::Rfc5424Sd | Self::Cef => &TEXTS,
            Self::Rfc3164Unique => &SHORT_EVENTS,
            Self::Rfc5424Unique => &EVENTS,
            Self::CefUnique => &CEF_EVENTS,
        }
    }
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

/// Endless log lines: from a pool of 256 messages of 16 texts, 5 of them CEF, from 12 hosts, picked at random; or, in
/// the formats named unique, texts with addresses, numbers and a 64-bit token of their own. The token never comes twice:
/// it is a number of a generator that gives each once in its cycle.
#[derive(Debug, Clone)]
pub struct SyslogLines {
    format: SyslogFormat,
    /// Empty where no text comes twice.
    pool: Vec<Message>,
    random: Random,
    /// Time of the next line; the time of all lines unless `fresh_time`.
    unix_nano: u64,
    fresh_time: bool,
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
        let SyslogOptions { format, start_unix_nano: unix_nano, .. } = *options;
        let mut random = Random::new(options.seed);
        let pool_size = if format.is_unique() { 0 } else { POOL_SIZE };
        let pool = (0..pool_size)
            .map(|number| Message::new(format, Picked::in_turn(number), unix_nano, &mut random))
            .collect();
        Self { format, pool, random, unix_nano, fresh_time: options.fresh_time }
    }

    /// Sizes in bytes of the messages in the pool, of which every line is one; nothing in the formats named unique.
    pub fn pool_sizes(&self) -> impl Iterator<Item = usize> {
        let stamp_bytes = stamp(self.format, self.unix_nano, self.fresh_time).len();
        self.pool.iter().map(move |message| message.before_stamp.len() + stamp_bytes + message.after_stamp.len())
    }
}

impl Source for SyslogLines {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let time = self.unix_nano;
        let own;
        let message = if self.format.is_unique() {
            let picked = Picked::at_random(self.format.texts().len(), &mut self.random);
            own = Message::new(self.format, picked, time, &mut self.random);
            &own
        } else {
            self.random.choice(&self.pool)
        };
        out.extend_from_slice(message.before_stamp.as_bytes());
        if self.fresh_time {
            out.extend_from_slice(stamp(self.format, time, true).as_bytes());
            self.unix_nano = time.saturating_add(STEP_NANO);
        } else {
            out.extend_from_slice(message.stamp.as_bytes());
        }
        out.extend_from_slice(message.after_stamp.as_bytes());
        Some(1)
    }
}

/// What a message is made of; each is a number that is taken modulo the choices there are.
#[derive(Debug, Clone, Copy)]
struct Picked {
    text: usize,
    priority: usize,
    host: usize,
    number: usize,
}

impl Picked {
    /// All choices by turns: every one comes about as often.
    fn in_turn(number: usize) -> Self {
        Self { text: number, priority: number, host: number, number }
    }

    fn at_random(texts: usize, random: &mut Random) -> Self {
        let mut below = |end: usize| random.range(0, end.saturating_sub(1) as u64) as usize;
        Self { text: below(texts), priority: below(PRIORITIES.len()), host: below(HOSTS.len()), number: below(65_536) }
    }
}

impl Message {
    fn new(format: SyslogFormat, picked: Picked, time: u64, random: &mut Random) -> Self {
        let texts = format.texts();
        let text = text(texts[picked.text % texts.len()], time, random);
        let priority = PRIORITIES[picked.priority % PRIORITIES.len()];
        let host = HOSTS[picked.host % HOSTS.len()];
        let number = picked.number;
        // Events are written as `app text`.
        let event = || text.split_once(' ').unwrap_or(("-", &text));
        let (before_stamp, after_stamp) = match format {
            SyslogFormat::Rfc3164 => (format!("<{priority}>"), format!(" {host} loadgen: {text}")),
            SyslogFormat::Rfc3164Unique => {
                let (app, event) = event();
                (format!("<{priority}>"), format!(" {host} {app}[{number}]: {event}"))
            }
            SyslogFormat::Rfc5424 => {
                let after = format!(" {host} loadgen - - - {text}");
                (format!("<{priority}>1 "), after)
            }
            SyslogFormat::Rfc5424Unique => {
                let (app, event) = event();
                let after = format!(" {host}.example.net {app} {number} EV{:02} - {event}", number % 90);
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
            SyslogFormat::CefUnique => (format!("<{priority}>"), format!(" {host} {text}")),
        };
        Self { before_stamp, stamp: stamp(format, time, false), after_stamp }
    }
}

/// Time stamp of a line. `fresh` stamps are as fine as the format allows.
fn stamp(format: SyslogFormat, unix_nano: u64, fresh: bool) -> String {
    let time = DateTime::new(unix_nano);
    match format {
        SyslogFormat::Rfc3164 | SyslogFormat::Rfc3164Unique | SyslogFormat::CefUnique => time.bsd(),
        SyslogFormat::Rfc5424 | SyslogFormat::Rfc5424Unique => time.rfc3339(fresh),
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
mod tests;
