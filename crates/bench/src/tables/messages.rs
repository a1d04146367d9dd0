//! IPFIX messages made before they are needed, so that making them takes no time from whoever sends or decodes.

use catchment_loadgen::traffic::Source;

/// Messages one after the other.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Messages {
    bytes: Vec<u8>,
    /// Where each ends, and the records in it.
    ends: Vec<(usize, u64)>,
}

impl Messages {
    /// Takes messages from an endless source until there are `records`.
    pub(super) fn record(mut source: impl Source, records: u64) -> Self {
        let mut messages = Self::default();
        let mut taken = 0;
        while taken < records {
            let Some(more) = source.append_next(&mut messages.bytes) else { break };
            messages.ends.push((messages.bytes.len(), more));
            taken += more;
        }
        messages
    }

    /// The messages of a stream (RFC 5655), whose records are not counted; what is no message at its end is left out.
    pub(super) fn of_stream(bytes: Vec<u8>) -> Self {
        let mut ends = Vec::new();
        let mut at = 0;
        while let Ok(Some(length)) = catchment_ipfix::stream_message_length(&bytes[at..]) {
            if bytes.len() - at < length {
                break;
            }
            at += length;
            ends.push((at, 0));
        }
        Self { bytes, ends }
    }

    /// All bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many messages.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Records in all of them.
    pub(super) fn records(&self) -> u64 {
        self.ends.iter().map(|(_, records)| records).sum()
    }

    /// Each message, and the records in it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, records)| {
            let message = &self.bytes[start..end];
            start = end;
            (message, records)
        })
    }

    /// Gives them all once.
    pub(super) fn source(&self) -> impl Source {
        self.source_again(1)
    }

    /// Gives them all so many times.
    pub(super) fn source_again(&self, times: u64) -> impl Source {
        Recorded((0..times).flat_map(|_| self.iter()))
    }
}

struct Recorded<I>(I);

impl<'a, I: Iterator<Item = (&'a [u8], u64)>> Source for Recorded<I> {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let (message, records) = self.0.next()?;
        out.extend_from_slice(message);
        Some(records)
    }
}

#[cfg(test)]
mod tests {
    use catchment_loadgen::traffic::{FlowExporter, FlowFields, FlowOptions, FlowProtocol};

    use super::*;

    /// What is recorded is what is made, and a stream is cut where it was put together.
    #[test]
    fn recorded() {
        let exporter = || FlowExporter::new(FlowOptions::new(FlowProtocol::Ipfix, FlowFields::Basic, 1, 2)).unwrap();
        let messages = Messages::record(exporter(), 1_000);
        assert!((1_000..1_100).contains(&messages.records()) && messages.len() > 10);
        let (mut source, mut same) = (messages.source(), exporter());
        for _ in 0..messages.len() {
            let [mut found, mut expected] = [Vec::new(), Vec::new()];
            assert_eq!(source.append_next(&mut found), same.append_next(&mut expected));
            assert_eq!(found, expected);
        }
        assert_eq!(source.append_next(&mut Vec::new()), None);
        let (mut twice, mut found) = (messages.source_again(2), Vec::new());
        while twice.append_next(&mut found).is_some() {}
        assert_eq!(found, messages.bytes().repeat(2));

        let mut stream = messages.bytes().to_vec();
        stream.extend([0, 10, 0, 99]);
        let again = Messages::of_stream(stream);
        assert!(again.iter().map(|(message, _)| message).eq(messages.iter().map(|(message, _)| message)));
    }
}
