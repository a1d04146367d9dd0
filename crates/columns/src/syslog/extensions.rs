//! CEF extension pairs as attributes: each key once, none that passes for a name of the receiver.

use std::borrow::Cow;

use catchment_syslog::Cef;
use rustc_hash::FxHashSet;

use super::names;
use crate::attributes::AttributeWriter;

/// Writes the extension pairs of `cef`, each key with `prefix` before it. The last of several values of a key wins.
pub(super) fn write(attributes: &mut AttributeWriter<'_>, cef: &Cef<'_>, prefix: &str) {
    let pairs: Vec<_> = cef.extensions().collect();
    let mut seen = FxHashSet::default();
    // Backwards, so that the last value is met first; then in the order as sent.
    let mut kept: Vec<usize> = (0..pairs.len()).rev().filter(|index| seen.insert(pairs[*index].0)).collect();
    kept.reverse();
    for index in kept {
        let (key, value) = &pairs[index];
        attributes.text(&attribute_name(&String::from_utf8_lossy(key), prefix), value);
    }
}

fn attribute_name<'k>(key: &'k str, prefix: &str) -> Cow<'k, str> {
    let name = if prefix.is_empty() { Cow::Borrowed(key) } else { Cow::Owned(format!("{prefix}{key}")) };
    if names::is_reserved(&name) && !name.starts_with(names::CEF_EXTENSION_PREFIX) {
        Cow::Owned(format!("{}{name}", names::CEF_EXTENSION_PREFIX))
    } else {
        name
    }
}
