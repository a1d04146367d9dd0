//! What a series is: the values of the attributes it is grouped by.

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

/// An attribute and where it is looked for. Written `resource:key`, `scope:key`, `point:key` (or `record:key`,
/// `attribute:key`), or just `key`, which means the attributes of the record or point itself too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttributeRef {
    /// Where to look.
    pub place: Place,
    /// The key, matched exactly.
    pub key: String,
}

impl FromStr for AttributeRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (place, key) = match text.split_once(':') {
            Some(("resource", key)) => (Place::Resource, key),
            Some(("scope", key)) => (Place::Scope, key),
            Some(("point" | "record" | "attribute", key)) => (Place::Record, key),
            _ => (Place::Record, text),
        };
        if key.is_empty() {
            return Err(format!(
                "`{text}` names no attribute: expected a key, or resource:<key>, scope:<key>, point:<key>"
            ));
        }
        Ok(Self { place, key: key.to_owned() })
    }
}

impl fmt::Display for AttributeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Resource => write!(f, "resource:{}", self.key),
            Place::Scope => write!(f, "scope:{}", self.key),
            Place::Record => f.write_str(&self.key),
        }
    }
}

/// One value of a series key. The type is part of the identity: `"80"` and `80` are different series, and an absent
/// attribute differs from an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyValue {
    /// The attribute is not there.
    Absent,
    /// Text.
    Text(Box<str>),
    /// An integer.
    Int(i64),
    /// The bits of a double.
    Double(u64),
    /// A boolean.
    Bool(bool),
    /// Bytes, or a list or map in its encoded form.
    Bytes(Box<[u8]>),
}

/// The identity of a series: one value for each attribute it is grouped by, in the configured order.
pub type SeriesKey = Box<[KeyValue]>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_places_are_read() {
        let parse = |text: &str| text.parse::<AttributeRef>();
        assert_eq!(parse("flow.io.bytes"), Ok(AttributeRef { place: Place::Record, key: "flow.io.bytes".into() }));
        assert_eq!(parse("resource:host.name"), Ok(AttributeRef { place: Place::Resource, key: "host.name".into() }));
        // A colon that follows no place belongs to the key.
        assert_eq!(parse("a:b"), Ok(AttributeRef { place: Place::Record, key: "a:b".into() }));
        assert!(parse("scope:").is_err());
    }
}
