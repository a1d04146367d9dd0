//! What to read: which value, at which time, of which series.

use std::fmt;
use std::str::FromStr;

/// Which attributes a key is looked for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Attributes of the resource.
    Resource,
    /// Attributes of the instrumentation scope.
    Scope,
    /// Attributes of the log record or of the data point.
    Record,
}

/// An attribute, or a part of one that is a map or list, and where it is looked for.
///
/// Written `resource:key`, `scope:key`, `point:key` (or `record:key`, `attribute:key`), or just `key`, which means the
/// attributes of the record or point itself too. A `/` begins a step into a map, by key, or into a list, by position
/// from 0: `syslog.structured_data/haproxy@32473/time_total_ms`. A `/` that belongs to a key is written `//`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttributePath {
    /// Where to look.
    pub place: Place,
    /// The key of the attribute, matched exactly.
    pub key: String,
    /// The steps into it; none for the attribute itself.
    pub steps: Vec<String>,
}

impl AttributePath {
    /// Key and steps joined by dots: the key under which a grouping attribute is written to the output.
    #[must_use]
    pub fn output_key(&self) -> String {
        std::iter::once(&self.key).chain(&self.steps).map(String::as_str).collect::<Vec<_>>().join(".")
    }
}

impl FromStr for AttributePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (place, path) = match text.split_once(':') {
            Some(("resource", path)) => (Place::Resource, path),
            Some(("scope", path)) => (Place::Scope, path),
            Some(("point" | "record" | "attribute", path)) => (Place::Record, path),
            _ => (Place::Record, text),
        };
        let mut steps = vec![String::new()];
        let mut rest = path.chars().peekable();
        while let Some(next) = rest.next() {
            if next == '/' && rest.next_if_eq(&'/').is_none() {
                steps.push(String::new());
            } else if let Some(step) = steps.last_mut() {
                step.push(next);
            }
        }
        if steps.iter().any(String::is_empty) {
            return Err(format!(
                "`{text}` names no attribute: expected a key, or resource:<key>, scope:<key>, point:<key>, with /<key> \
                 for each step into a map and // for a slash within a key"
            ));
        }
        let key = steps.remove(0);
        Ok(Self { place, key, steps })
    }
}

impl fmt::Display for AttributePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.place {
            Place::Resource => "resource:",
            Place::Scope => "scope:",
            Place::Record => "",
        })?;
        f.write_str(&self.key.replace('/', "//"))?;
        self.steps.iter().try_for_each(|step| write!(f, "/{}", step.replace('/', "//")))
    }
}

/// What to make of a text value where a number is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextNumbers {
    /// Text is no number.
    #[default]
    Refuse,
    /// Text that spells a decimal number is that number.
    Decimal,
    /// Text that spells a duration with units (`1.5s`, `20ms`, `1h2m`) is its length in seconds.
    Duration,
}

/// Where the observed values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSource {
    /// A numeric attribute of log records.
    LogAttribute {
        /// Which attribute.
        attribute: AttributePath,
        /// Whether text that spells a number counts.
        text: TextNumbers,
    },
    /// Gauges and delta sums of these names; a name may end in `*`. Integer values above 2^53 lose their last bits.
    Metric {
        /// Names or prefixes.
        names: Vec<String>,
    },
}

/// Which clock places an observation in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeSource {
    /// The time of the record or point, by the device's word; the observed time where there is none.
    #[default]
    Event,
    /// The time of receipt; for data points, which have none, the time given by the caller.
    Observed,
}

/// What becomes of infinite values. NaN is never observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NonFinite {
    /// They are no observations.
    #[default]
    Drop,
    /// They are observed: below or above all other values.
    Keep,
}

/// What to read out of batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The observed values.
    pub source: ValueSource,
    /// A number of at least 1 that says how many observations an item stands for; 1 where it is absent.
    pub weight_from: Option<AttributePath>,
    /// What tells series apart.
    pub group_by: Vec<AttributePath>,
    /// The times.
    pub time: TimeSource,
    /// Infinite values.
    pub non_finite: NonFinite,
}

impl Query {
    /// Values of one series, by event time, each of weight 1.
    #[must_use]
    pub fn new(source: ValueSource) -> Self {
        Self {
            source,
            weight_from: None,
            group_by: Vec::new(),
            time: TimeSource::default(),
            non_finite: NonFinite::default(),
        }
    }

    /// Reads series by these attributes.
    #[must_use]
    pub fn grouped_by(mut self, group_by: Vec<AttributePath>) -> Self {
        self.group_by = group_by;
        self
    }
}

/// Whether `name` is one of `patterns`: equal, or beginning with what stands before a final `*`.
#[must_use]
pub fn name_matches(patterns: &[String], name: &[u8]) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => pattern.as_bytes() == name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(place: Place, key: &str, steps: &[&str]) -> Result<AttributePath, String> {
        Ok(AttributePath { place, key: key.into(), steps: steps.iter().map(|step| (*step).to_owned()).collect() })
    }

    /// Places, steps and escaped slashes; what is written is what is read.
    #[test]
    fn paths_are_read() {
        let parse = |text: &str| text.parse::<AttributePath>();
        assert_eq!(parse("flow.io.bytes"), path(Place::Record, "flow.io.bytes", &[]));
        assert_eq!(parse("resource:host.name"), path(Place::Resource, "host.name", &[]));
        // A colon that follows no place belongs to the key.
        assert_eq!(parse("a:b"), path(Place::Record, "a:b", &[]));
        let deep = "attribute:syslog.structured_data/haproxy@32473/time_total_ms";
        assert_eq!(parse(deep), path(Place::Record, "syslog.structured_data", &["haproxy@32473", "time_total_ms"]));
        assert_eq!(parse("app.io//name/a//b"), path(Place::Record, "app.io/name", &["a/b"]));
        for text in ["a/b/c", "scope:a//b/0", "resource:x"] {
            assert_eq!(parse(text).expect("a path").to_string(), text);
        }
        assert_eq!(parse(deep).expect("a path").output_key(), "syslog.structured_data.haproxy@32473.time_total_ms");
    }

    /// Empty keys and steps are refused.
    #[test]
    fn paths_without_keys_are_refused() {
        for text in ["", "scope:", "/a", "a/", "a/b/"] {
            assert!(text.parse::<AttributePath>().is_err(), "{text}");
        }
    }

    /// A final star stands for any rest.
    #[test]
    fn names_match_by_prefix_on_request() {
        let patterns = ["cpu.*".to_owned(), "mem".to_owned()];
        let matches = |name: &str| name_matches(&patterns, name.as_bytes());
        assert!(matches("cpu.user") && matches("mem"));
        assert!(!matches("cpu") && !matches("mem.free"));
    }
}
