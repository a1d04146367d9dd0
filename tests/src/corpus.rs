//! Messages of all kinds, and what they are to become.

use serde_json::{Map, Value};

use crate::{binaries, generated_lines, repository, run_with_input};

/// A line of `crates/syslog/tests/data/cases.ndjson`, whose README explains the keys.
#[derive(Debug)]
pub struct Case {
    /// What arrives.
    pub input: Vec<u8>,
    /// All keys of the case.
    pub keys: Value,
}

impl Case {
    /// A key that is a text.
    ///
    /// # Panics
    /// If it is not.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.keys[key].as_str().unwrap_or_else(|| panic!("no {key} in {}", self.keys))
    }

    /// `expect`, and the same with the keys of each of `accept`.
    #[must_use]
    pub fn answers(&self) -> Vec<Map<String, Value>> {
        let expect = self.keys["expect"].as_object().cloned().unwrap_or_default();
        let others = self.keys["accept"].as_array().into_iter().flatten().filter_map(Value::as_object);
        let others = others.map(|other| expect.clone().into_iter().chain(other.clone()).collect());
        std::iter::once(expect.clone()).chain(others).collect()
    }
}

/// All cases of the syslog parser.
///
/// # Panics
/// If the file is not as its README says.
#[must_use]
pub fn cases() -> Vec<Case> {
    let file = repository().join("crates/syslog/tests/data/cases.ndjson");
    let text = std::fs::read_to_string(file).expect("the cases");
    let case = |line| {
        let keys: Value = serde_json::from_str(line).expect("each line is JSON");
        let input = match keys["input_b64"].as_str() {
            Some(text) => base64(text),
            None => keys["input"].as_str().expect("an input").as_bytes().to_vec(),
        };
        Case { input, keys }
    };
    text.lines().map(case).collect()
}

/// Messages that differ in format, in number and types of attributes, and in what they repeat.
#[derive(Debug)]
pub struct Corpus(Vec<Vec<u8>>);

impl Corpus {
    /// All cases that are one message, with generated lines of every format between them.
    #[must_use]
    pub fn new() -> Self {
        let mut cases = cases().into_iter().filter(|case| case.text("framing") == "datagram").map(|case| case.input);
        let mut formats: Vec<_> = ["rfc5424_sd", "rfc3164", "cef", "rfc5424", "rfc3164_unique", "cef_unique"]
            .iter()
            .map(|format| generated_lines(&["--format", format, "--count", "150", "--seed", "3"]).into_iter())
            .collect();
        let mut messages = Vec::new();
        for number in 0..150 {
            messages.extend(formats.iter_mut().filter_map(Iterator::next).map(String::into_bytes));
            messages.extend(cases.next());
            let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
            let traced = format!("<13>1 - host-{} app - - [t@1 traceparent=\"{trace}\" n=\"{number}\"] m", number % 7);
            messages.push(traced.into_bytes());
        }
        messages.retain(|message| !message.is_empty());
        Self(messages)
    }

    /// Number of messages.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The messages as one octet-counted stream.
    #[must_use]
    pub fn stream(&self) -> Vec<u8> {
        self.0.iter().flat_map(|message| octet_counted(message)).collect()
    }

    /// What `catchment decode syslog` with `options` makes of the stream, [`comparable`].
    ///
    /// # Panics
    /// If it gives another number of records.
    #[must_use]
    pub fn decoded(&self, options: &[&str]) -> Vec<Value> {
        let mut command = binaries::catchment();
        let _ = command.args(["decode", "syslog", "--framing", "octet_counting"]).args(options);
        let ended = run_with_input(&mut command, &self.stream());
        let records: Vec<_> =
            ended.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
        assert_eq!(records.len(), self.count(), "{}", ended.stderr);
        comparable(records)
    }
}

impl Default for Corpus {
    fn default() -> Self {
        Self::new()
    }
}

/// A message with its length before it.
#[must_use]
pub fn octet_counted(message: &[u8]) -> Vec<u8> {
    [format!("{} ", message.len()).as_bytes(), message].concat()
}

/// Records without what is of their way and not of their message (peer, transport and time of receipt), sorted.
#[must_use]
pub fn comparable(mut records: Vec<Value>) -> Vec<Value> {
    for record in &mut records {
        let object = record.as_object_mut().expect("records are objects");
        let _ = object.remove("observed_time");
        let attributes = object.get_mut("attributes").and_then(Value::as_object_mut).expect("attributes");
        attributes.retain(|key, _| !key.starts_with("network."));
    }
    records.sort_by_cached_key(Value::to_string);
    records
}

/// Decodes standard Base64.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let value = DIGITS.iter().position(|known| *known == digit).expect("a digit of Base64");
        bits = bits << 6 | u32::try_from(value).expect("64 digits");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).expect("eight bits"));
        }
    }
    bytes
}
