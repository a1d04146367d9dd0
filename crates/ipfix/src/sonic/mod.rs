//! SONiC's high-frequency telemetry: IPFIX whose templates and names travel beside the stream.

/// A row of STATE_DB's table `HIGH_FREQUENCY_TELEMETRY_SESSION_TABLE`: one telemetry session, as it is written there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionRow {
    /// `enabled` or `disabled`.
    pub stream_status: String,
    /// `ipfix`.
    pub session_type: String,
    /// Names of the objects, separated by commas.
    pub object_names: String,
    /// Labels of the objects, separated by commas, in the order of the names.
    pub object_ids: String,
    /// IPFIX messages with the template sets of the session.
    pub session_config: Vec<u8>,
}
