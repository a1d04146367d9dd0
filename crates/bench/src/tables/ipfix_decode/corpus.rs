//! The messages that are decoded.

use catchment_loadgen::traffic::{
    FlowExporter, FlowFields, FlowOptions, FlowOptionsError, FlowProtocol, SonicOptions, SonicOptionsError,
    SonicSession, SonicTelemetry,
};

use super::super::Setup;
use super::super::messages::Messages;

/// Bytes of messages of flow records in a pass: more than a core's own caches hold.
const FLOW_BYTES: u64 = 4 << 20;
/// Bytes of telemetry in a pass, which decodes about as fast as it can be read: more than all caches hold, as counters that
/// have just been received are not in them.
const SONIC_BYTES: u64 = 64 << 20;

/// Kinds of flow records, by their fields.
const FLOWS: [(&str, FlowFields, u64); 4] = [
    ("flow-11", FlowFields::Basic, 51),
    ("flow-16", FlowFields::Softflowd, 50),
    ("flow-18", FlowFields::Router, 67),
    ("flow-32", FlowFields::IosXrLayer2, 108),
];

/// Telemetry: objects, statistics of each, records in a message.
const SONIC: [(&str, u16, u16, u16); 3] =
    [("sonic-2", 1, 2, 100), ("sonic-500", 50, 10, 10), ("sonic-8000", 125, 64, 1)];

/// Where attributes of telemetry go.
const PLACES: [(&str, Attributes); 2] = [("point", Attributes::Point), ("resource", Attributes::Resource)];

/// Recorded streams, by their names.
const CAPTURES: [&str; 2] = ["ixc-01-odid0", "local-softflowd-ipfix-tcp-stream"];

/// What the name of the object and its kin are attributes of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attributes {
    /// Each point.
    Point,
    /// The resource, with one for each object.
    Resource,
}

/// What is in the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Flow and options records.
    Flows,
    /// Counters of a switch, with what tells their names.
    Sonic(SonicSession, Attributes),
}

/// Messages, and what it takes to decode them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Corpus {
    pub(super) content: Content,
    /// Decoded again and again.
    pub(super) messages: Messages,
}

/// There is no such corpus.
#[derive(Debug, thiserror::Error)]
pub(super) enum CorpusError {
    #[error(transparent)]
    Flows(#[from] FlowOptionsError),
    #[error(transparent)]
    Sonic(#[from] SonicOptionsError),
    #[error("cannot read {path}: {source}")]
    Read { path: String, source: std::io::Error },
}

/// Names of all cases.
pub(super) fn names() -> Vec<String> {
    let flows = FLOWS.iter().map(|(name, ..)| (*name).to_owned());
    let sonic = SONIC.iter().flat_map(|(name, ..)| PLACES.map(|(place, _)| format!("{name}/{place}")));
    flows.chain(sonic).chain(CAPTURES.map(|name| format!("capture/{name}"))).collect()
}

impl Corpus {
    /// The messages of a case of [`names`]; nothing if they are a capture and there is no folder of captures.
    pub(super) fn named(case: &str, setup: &Setup) -> Result<Option<Self>, CorpusError> {
        if let Some((_, fields, record_bytes)) = FLOWS.iter().find(|(name, ..)| *name == case) {
            let exporter = FlowExporter::new(FlowOptions::new(FlowProtocol::Ipfix, *fields, 1, 0))?;
            let messages = Messages::record(exporter, FLOW_BYTES / record_bytes);
            return Ok(Some(Self { content: Content::Flows, messages }));
        }
        if let Some(name) = case.strip_prefix("capture/") {
            let Some(folder) = &setup.captures else { return Ok(None) };
            let path = folder.join(format!("{name}.ipfix"));
            let bytes = std::fs::read(&path)
                .map_err(|source| CorpusError::Read { path: path.display().to_string(), source })?;
            return Ok(Some(Self { content: Content::Flows, messages: Messages::of_stream(bytes) }));
        }
        let found = SONIC.iter().zip(std::iter::repeat(PLACES)).find_map(|(one, places)| {
            let place = places.into_iter().find(|(place, _)| format!("{}/{place}", one.0) == case)?;
            Some((one, place.1))
        });
        let Some((&(_, objects, statistics, records_per_message), attributes)) = found else { return Ok(None) };
        let options = SonicOptions { objects, statistics, records_per_message, ..SonicOptions::default() };
        let telemetry = SonicTelemetry::new(options)?;
        let content = Content::Sonic(telemetry.session(), attributes);
        let record_bytes = 8 * (1 + u64::from(objects) * u64::from(statistics));
        Ok(Some(Self { content, messages: Messages::record(telemetry, SONIC_BYTES / record_bytes) }))
    }

    /// Messages with the templates that are not among the others.
    pub(super) fn templates(&self) -> &[u8] {
        match &self.content {
            Content::Flows => &[],
            Content::Sonic(session, _) => &session.fields.session_config,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name has messages of about the same size, but captures, for which a folder is needed.
    #[test]
    fn all() {
        let setup = Setup::default();
        for name in names() {
            let corpus = Corpus::named(&name, &setup).unwrap();
            assert_eq!(corpus.is_none(), name.starts_with("capture/"), "{name}");
            let Some(corpus) = corpus else { continue };
            let bytes = corpus.messages.bytes().len() as u64;
            let wanted = if name.starts_with("sonic") { SONIC_BYTES } else { FLOW_BYTES };
            assert!(bytes > wanted * 9 / 10 && bytes < wanted * 3 / 2, "{name}: {bytes}");
            assert_eq!(corpus.templates().is_empty(), name.starts_with("flow-"));
        }
    }
}
