//! What a series is: the values of the attributes it is grouped by.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// One value of a series key. The type is part of the identity: `"80"` and `80` are different series, and an absent
/// attribute differs from an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyValue {
    /// The attribute is not there.
    Absent,
    /// Text. Shared by the series that have it, which are often many.
    Text(Arc<str>),
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
///
/// A clone shares the values. The hash is computed once and is the same in every process of one build, so that a table
/// of series costs eight bytes of hashing and mostly a comparison of pointers.
#[derive(Debug, Clone)]
pub struct SeriesKey {
    hash: u64,
    values: Arc<[KeyValue]>,
}

impl SeriesKey {
    /// The series of these values.
    #[must_use]
    pub fn new(values: Vec<KeyValue>) -> Self {
        // Mixes well without a secret: what senders choose cannot be made to collide cheaply.
        let mut hasher = DefaultHasher::new();
        values.hash(&mut hasher);
        Self { hash: hasher.finish(), values: values.into() }
    }
}

impl Default for SeriesKey {
    /// The one series of what is not grouped.
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl PartialEq for SeriesKey {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && (Arc::ptr_eq(&self.values, &other.values) || self.values == other.values)
    }
}

impl Eq for SeriesKey {}

impl Hash for SeriesKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Deref for SeriesKey {
    type Target = [KeyValue];

    fn deref(&self) -> &[KeyValue] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types and absence tell series apart; equal contents are one series whatever memory they are in.
    #[test]
    fn identity_is_content_and_type() {
        let one = |value: KeyValue| SeriesKey::new(vec![value]);
        assert_eq!(one(KeyValue::Text("80".into())), one(KeyValue::Text("80".into())));
        let different =
            [KeyValue::Text("80".into()), KeyValue::Int(80), KeyValue::Absent, KeyValue::Text("".into())].map(one);
        for (at, a) in different.iter().enumerate() {
            assert!(different[at + 1..].iter().all(|b| a != b), "{a:?}");
        }
    }
}
