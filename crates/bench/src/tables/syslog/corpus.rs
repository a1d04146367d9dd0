//! The lines that are sent.

use catchment_loadgen::traffic::{DEFAULT_START_UNIX_NANO, Payloads, Source, SyslogFormat, SyslogLines, SyslogOptions};

/// A kind of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Corpus {
    /// Its name in cases.
    pub(super) name: &'static str,
    pub(super) format: SyslogFormat,
    /// Every line has a time of its own.
    pub(super) fresh_time: bool,
}

/// All of them. Bare CEF has no time stamp that could be fresh.
pub(super) const CORPORA: [Corpus; 10] = [
    Corpus { name: "rfc3164", format: SyslogFormat::Rfc3164, fresh_time: false },
    Corpus { name: "rfc5424", format: SyslogFormat::Rfc5424, fresh_time: false },
    Corpus { name: "rfc5424_sd", format: SyslogFormat::Rfc5424Sd, fresh_time: false },
    Corpus { name: "cef", format: SyslogFormat::Cef, fresh_time: false },
    Corpus { name: "rfc3164_fresh", format: SyslogFormat::Rfc3164, fresh_time: true },
    Corpus { name: "rfc5424_fresh", format: SyslogFormat::Rfc5424, fresh_time: true },
    Corpus { name: "rfc5424_sd_fresh", format: SyslogFormat::Rfc5424Sd, fresh_time: true },
    Corpus { name: "rfc3164_unique", format: SyslogFormat::Rfc3164Unique, fresh_time: true },
    Corpus { name: "rfc5424_unique", format: SyslogFormat::Rfc5424Unique, fresh_time: true },
    Corpus { name: "cef_unique", format: SyslogFormat::CefUnique, fresh_time: true },
];

impl Corpus {
    /// Whether all lines have one time.
    pub(super) fn is_frozen(&self) -> bool {
        !self.fresh_time
    }

    /// Whether default batches are measured too: of the lines of a pool only with one time.
    pub(super) fn with_default_batch(&self) -> bool {
        self.is_frozen() || self.format.is_unique()
    }

    /// Makes lines in advance, so that making them takes no time from the sender.
    pub(super) fn record(&self, lines: u64) -> Recording {
        let mut source = SyslogLines::with_options(&SyslogOptions {
            format: self.format,
            seed: 0,
            fresh_time: self.fresh_time,
            start_unix_nano: DEFAULT_START_UNIX_NANO,
        });
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..lines {
            let _ = source.append_next(&mut bytes);
            ends.push(bytes.len());
        }
        Recording { bytes, ends }
    }
}

/// Lines one after the other.
#[derive(Debug)]
pub(super) struct Recording {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Recording {
    /// How many.
    pub(super) fn lines(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Gives them all once.
    pub(super) fn source(&self) -> impl Source {
        let mut start = 0;
        Payloads(self.ends.iter().map(move |&end| {
            let line = &self.bytes[start..end];
            start = end;
            line
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is recorded is what is made.
    #[test]
    fn recordings() {
        for corpus in CORPORA {
            let recording = corpus.record(100);
            assert_eq!(recording.lines(), 100);
            let mut source = recording.source();
            let mut all = Vec::new();
            let count = std::iter::from_fn(|| source.append_next(&mut all)).count();
            assert_eq!((count, &all), (100, &recording.bytes), "{}", corpus.name);
            assert!(!all.contains(&b'\n'));
        }
    }
}
