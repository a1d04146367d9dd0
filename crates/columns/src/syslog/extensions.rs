//! CEF extension pairs as attributes: each key once, none that passes for a name of the receiver.

use catchment_syslog::Cef;

use super::names::{self, Schema};
use super::row::RowOptions;
use crate::table::AttributeWriter;

/// Writes the extension pairs of `cef`. The last of several values of a key wins.
pub(super) fn write(attributes: &mut AttributeWriter<'_>, cef: &Cef<'_>, options: &RowOptions) {
    let prefix = match (options.cef_extension_prefix.as_str(), options.schema) {
        ("", Schema::Otel) => names::CEF_EXTENSION_PREFIX,
        (prefix, _) => prefix,
    };
    let mut name = Vec::new();
    for (key, value) in cef.extensions() {
        attributes.last_text(attribute_name(key, prefix, &mut name), &value);
    }
}

/// The name for a key, made in `name` if it is not the key itself. Different keys have different names: either all names
/// begin with [`names::CEF_EXTENSION_PREFIX`], or just those do that would be reserved without it.
fn attribute_name<'n>(key: &'n [u8], prefix: &str, name: &'n mut Vec<u8>) -> &'n [u8] {
    if prefix.is_empty() && !names::is_reserved(key) {
        return key;
    }
    name.clear();
    name.extend_from_slice(prefix.as_bytes());
    name.extend_from_slice(key);
    if names::is_reserved(name) && !prefix.starts_with(names::CEF_EXTENSION_PREFIX) {
        let _ = name.splice(..0, names::CEF_EXTENSION_PREFIX.bytes());
    }
    name
}
