//! CEF extension pairs as attributes: each key once, none that passes for a name of the receiver.

use std::borrow::Cow;

use catchment_syslog::Cef;
use rustc_hash::FxHashSet;

use super::names;
use crate::attributes::AttributeWriter;

/// Up to so many pairs are compared with each other; above, a set is cheaper and keeps the time linear.
const COMPARED: usize = 32;

/// Writes the extension pairs of `cef`, each key with `prefix` before it. The last of several values of a key wins.
pub(super) fn write(attributes: &mut AttributeWriter<'_>, cef: &Cef<'_>, prefix: &str) {
    let pairs: Vec<_> = cef.extensions().collect();
    let last = if pairs.len() > COMPARED { last_of_each_key(&pairs) } else { Vec::new() };
    for (index, (key, value)) in pairs.iter().enumerate() {
        let is_last = match last.get(index) {
            Some(is_last) => *is_last,
            None => pairs[index + 1..].iter().all(|(later, _)| later != key),
        };
        if is_last {
            attributes.text(&attribute_name(&String::from_utf8_lossy(key), prefix), value);
        }
    }
}

/// For each pair whether it is the last of its key.
fn last_of_each_key(pairs: &[(&[u8], Cow<'_, [u8]>)]) -> Vec<bool> {
    let mut seen = FxHashSet::default();
    let mut last: Vec<bool> = pairs.iter().rev().map(|(key, _)| seen.insert(*key)).collect();
    last.reverse();
    last
}

fn attribute_name<'k>(key: &'k str, prefix: &str) -> Cow<'k, str> {
    let name = if prefix.is_empty() { Cow::Borrowed(key) } else { Cow::Owned(format!("{prefix}{key}")) };
    if names::is_reserved(&name) && !name.starts_with(names::CEF_EXTENSION_PREFIX) {
        Cow::Owned(format!("{}{name}", names::CEF_EXTENSION_PREFIX))
    } else {
        name
    }
}
