//! From what the engine hands over to what a lane takes.

use std::net::IpAddr;

use bytes::Bytes;
use catchment_delivery::load::Load;
use catchment_delivery::route::{Facts, LaneKey};
use catchment_delivery::signal::Signal;
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_engine::local::exporter::EffectHandler;
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata, PdataDelivery, PdataEffectHandlerExtension};
use otel_arrow_dfe_pdata_codec::PdataEncoding;

/// What a batch is acknowledged with.
pub(super) type Token = PdataDelivery;

/// A batch ready for its lane, or refused with the reason.
pub(super) enum Taken {
    Load(Load, Token),
    Refused(OtapPdata, String),
}

/// Takes a batch apart. Requests of OTLP stay bytes if `keep_otlp`; everything else becomes record batches.
pub(super) async fn take(mut pdata: OtapPdata, keep_otlp: bool, effects: &EffectHandler<OtapPdata>) -> Taken {
    if keep_otlp && pdata.payload_ref().encoding() == Some(&PdataEncoding::OTLP) {
        let signal = match pdata.signal_type() {
            SignalType::Logs => Signal::Logs,
            SignalType::Metrics => Signal::Metrics,
            SignalType::Traces => Signal::Traces,
        };
        let request: Bytes = pdata.payload_ref().encoded_bytes().cloned().unwrap_or_default();
        return match Load::otlp(signal, request) {
            Ok(load) => Taken::Load(load, pdata.into_delivery()),
            Err(error) => Taken::Refused(pdata, error.to_string()),
        };
    }
    // Counted while it is what came in, for the books of the engine.
    let _ = pdata.num_items();
    match effects.prepare_otap_work(pdata).await {
        Ok((delivery, records)) => Taken::Load(Load::records(records), delivery),
        Err(error) => {
            let (error, pdata) = error.into_parts();
            Taken::Refused(pdata, error.to_string())
        }
    }
}

/// What a batch has to offer as a key.
pub(super) struct Key<'a> {
    peer: Option<IpAddr>,
    context: &'a Context,
    series: Option<u64>,
}

impl<'a> Key<'a> {
    /// Looks for what `key` asks for.
    pub(super) fn of(key: &LaneKey, load: &Load, token: &'a Token) -> Self {
        let context = token.context();
        let series = if *key == LaneKey::Series { load.series() } else { None };
        Self { peer: context.peer_addr().map(|peer| peer.ip()), context, series }
    }
}

impl Facts for Key<'_> {
    fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let headers = self.context.transport_headers()?;
        headers.iter().find(|header| header.name.as_str().eq_ignore_ascii_case(name)).map(|header| header.value.bytes)
    }

    fn series(&self) -> Option<u64> {
        self.series
    }
}
