//! Scripts from YAML, and what must hold for any script.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Answer, Event, Lie, Moment, Protocol, RetryAfter, SinkScript, Step};

/// The largest window of HTTP/2 (RFC 9113, section 6.9.1).
const MAX_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// The longest time that a script can ask for, so that no clock overflows.
const MAX_TIME: Duration = Duration::from_secs(366 * 24 * 3_600);

/// A script is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// Not YAML.
    #[error("the script is not YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// A key is unknown, or its value is wrong.
    #[error("{key}: {reason}")]
    Key {
        /// Where, such as `steps[2].answer.grpc.code`.
        key: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A script cannot be written.
    #[error("the script cannot be written: {0}")]
    Write(#[from] serde_json::Error),
}

impl SinkScript {
    /// Reads and checks a script.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] with the key at fault.
    pub fn from_yaml(text: &str) -> Result<Self, ScriptError> {
        // By way of JSON values, where an answer with settings is a map with one key and needs no tag.
        let value: serde_json::Value = serde_yaml::from_str(text)?;
        // An empty file is an empty script.
        let value = if value.is_null() { serde_json::json!({}) } else { value };
        let script: Self = serde_path_to_error::deserialize(value).map_err(|error| ScriptError::Key {
            key: error.path().to_string(),
            reason: error.into_inner().to_string(),
        })?;
        script.check()?;
        Ok(script)
    }

    /// Reads and checks a script file.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] if the file cannot be read, or with the key at fault.
    pub fn from_file(path: &Path) -> Result<Self, ScriptError> {
        let read = std::fs::read_to_string(path);
        Self::from_yaml(&read.map_err(|source| ScriptError::Read { path: path.to_owned(), source })?)
    }

    /// Writes a script so that [`from_yaml`](Self::from_yaml) reads the same.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] if it cannot be said in YAML.
    pub fn to_yaml(&self) -> Result<String, ScriptError> {
        Ok(serde_yaml::to_string(&serde_json::to_value(self)?)?)
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Key`] for the first key at fault.
    pub fn check(&self) -> Result<(), ScriptError> {
        if self.window_bytes == 0 || self.window_bytes > MAX_WINDOW_BYTES {
            return fault("window_bytes", format!("{}, expected 1 to {MAX_WINDOW_BYTES}", self.window_bytes));
        }
        for (number, step) in self.steps.iter().enumerate() {
            step.check(&format!("steps[{number}]"))?;
        }
        Ok(())
    }
}

impl Step {
    fn check(&self, at: &str) -> Result<(), ScriptError> {
        let when = &self.when;
        if when.from == 0 {
            return fault(&format!("{at}.when.from"), "0, but the first request is 1");
        }
        if let Some(to) = when.to
            && to < when.from
        {
            return fault(&format!("{at}.when.to"), format!("{to}, expected at least `from`, which is {}", when.from));
        }
        if when.every == 0 {
            return fault(&format!("{at}.when.every"), "0, expected at least 1");
        }
        if !(0.0..=1.0).contains(&when.probability) {
            return fault(&format!("{at}.when.probability"), format!("{}, expected 0 to 1", when.probability));
        }
        if let Some(before) = when.before
            && before <= when.after
        {
            let after = when.after;
            return fault(&format!("{at}.when.before"), format!("{before:?}, expected more than `after`, {after:?}"));
        }
        if self.times == Some(0) {
            return fault(&format!("{at}.times"), "0, expected at least 1");
        }
        if self.delay > MAX_TIME {
            return fault(&format!("{at}.delay"), "more than 366 days");
        }
        if self.stop_reading.as_ref().is_some_and(|unread| unread.time > MAX_TIME) {
            return fault(&format!("{at}.stop_reading.for"), "more than 366 days");
        }
        self.check_answer(&format!("{at}.answer"))?;
        let unread = matches!(self.answer, Answer::Close { at: Moment::BeforeBody | Moment::DuringBody, .. })
            || matches!(self.answer, Answer::Goaway { exclude: true, .. });
        if self.store == Some(true) && (unread || when.on == Event::Open) {
            return fault(&format!("{at}.store"), "true, but nothing is read that could be stored");
        }
        if self.store == Some(false) && matches!(self.answer, Answer::PartialSuccess { .. }) {
            return fault(&format!("{at}.store"), "false, but a partial success stores what it does not reject");
        }
        Ok(())
    }

    fn check_answer(&self, at: &str) -> Result<(), ScriptError> {
        let protocols = [Protocol::OtlpGrpc, Protocol::OtlpHttp, Protocol::Otap];
        let name = self.answer.name();
        if !protocols.into_iter().any(|protocol| self.answer.fits(protocol, self.when.on)) {
            let right = "ok, never, grpc, goaway, reset_stream, or close with `at: before_body`";
            return fault(at, format!("{name} is no answer to the opening of a stream, expected {right}"));
        }
        if let Some(protocol) = self.when.protocol
            && !self.answer.fits(protocol, self.when.on)
        {
            let fits = |protocol: &Protocol| self.answer.fits(*protocol, self.when.on);
            let right: Vec<_> = protocols.iter().filter(|protocol| fits(protocol)).map(spelled).collect();
            let (right, wrong) = (right.join(" or "), spelled(&protocol));
            return fault(at, format!("{name} cannot be said over {wrong}, expected `when.protocol` to be {right}"));
        }
        match &self.answer {
            Answer::Http { status, .. } if !(200..600).contains(status) => {
                fault(&format!("{at}.http.status"), format!("{status}, expected 200 to 599"))
            }
            Answer::Http { retry_after: Some(RetryAfter::DateIn(time)), .. } if *time > MAX_TIME => {
                fault(&format!("{at}.http.retry_after.date_in"), "more than 366 days")
            }
            Answer::SizeLimit { bytes: 0, .. } => fault(&format!("{at}.size_limit.bytes"), "0, expected at least 1"),
            Answer::Lie(Lie::OutOfOrder) if !self.delay.is_zero() => {
                fault(at, "lie out_of_order waits for the next batch, expected no `delay`")
            }
            _ => Ok(()),
        }
    }
}

fn fault(key: &str, reason: impl Into<String>) -> Result<(), ScriptError> {
    Err(ScriptError::Key { key: key.to_owned(), reason: reason.into() })
}

fn spelled(protocol: &Protocol) -> &'static str {
    match protocol {
        Protocol::OtlpGrpc => "otlp_grpc",
        Protocol::OtlpHttp => "otlp_http",
        Protocol::Otap => "otap",
    }
}
