//! Resources of a batch under the schema `otel`: one for each host, application and version.

use catchment_syslog::Record;
use hashbrown::HashMap;

use super::names;
use crate::table::{AttributeTable, AttributeWriter};

/// The resources met so far in a batch.
#[derive(Debug, Default)]
pub(super) struct Resources {
    numbers: HashMap<Box<[u8]>, u16>,
    key: Vec<u8>,
    /// Resource of the record before.
    last: Option<(Vec<u8>, u16)>,
}

impl Resources {
    /// The number of the record's resource, whose attributes are written when it is new.
    pub(super) fn number(&mut self, record: &Record<'_>, attributes: &mut AttributeTable) -> u16 {
        let version = record.structured_data.as_ref().and_then(|data| {
            let mut origin = data.elements().filter(|element| element.id() == b"origin");
            origin.find_map(|element| element.params().find(|(name, _)| *name == b"swVersion").map(|(_, value)| value))
        });
        let parts = [
            (names::RESOURCE_HOST, record.hostname),
            (names::RESOURCE_SERVICE, record.app_name),
            (names::RESOURCE_VERSION, version.as_deref()),
        ];
        self.key.clear();
        for (_, part) in parts {
            // Present and empty are told apart, and the length keeps parts apart from each other.
            let length = part.map_or(0, |part| part.len() + 1);
            self.key.extend_from_slice(&length.to_le_bytes());
            self.key.extend_from_slice(part.unwrap_or_default());
        }
        if let Some((key, number)) = &self.last
            && *key == self.key
        {
            return *number;
        }
        let number = match self.numbers.get(self.key.as_slice()) {
            Some(number) => *number,
            None => {
                // There are at most as many resources as records, which 16 bits can tell apart.
                let number = u16::try_from(self.numbers.len()).unwrap_or(u16::MAX);
                let _ = self.numbers.insert(self.key.as_slice().into(), number);
                let mut writer = AttributeWriter::new(attributes, number, false);
                for (name, part) in parts {
                    if let Some(part) = part {
                        writer.text(name, part);
                    }
                }
                number
            }
        };
        self.last = Some((self.key.clone(), number));
        number
    }
}
