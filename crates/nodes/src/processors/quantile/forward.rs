//! What of an input goes on unchanged.

use catchment_columns::quantile::{Fate, Kept, OtlpSignal, forward};
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_pdata_codec::OtapPayload;
use serde::Deserialize;

use super::measure::Input;

/// Which items go on, beside the results of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Forward {
    /// None; signals that no measure asks for pass all the same.
    #[default]
    None,
    /// What is no observation of any measure.
    Rest,
    /// All.
    All,
}

/// What becomes of items whose window has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Late {
    /// They are dropped.
    #[default]
    Drop,
    /// They go out on the output [`LATE_PORT`].
    SideOutput,
}

/// The output port of late items.
pub(super) const LATE_PORT: &str = "late";

/// A part of an input, with the number of its items.
pub(super) type Part = (OtapPayload, u64);

/// Whether an item is no observation: it has no value that a measure can read.
pub(super) const fn is_rest(fate: Fate) -> bool {
    matches!(fate, Fate::NoValue | Fate::Cumulative | Fate::NotANumber | Fate::BadWeight)
}

/// What goes on to the main output.
///
/// # Errors
/// Says why the input cannot be taken apart.
pub(super) fn onward(
    which: Forward,
    input: Input<'_>,
    fates: &[Fate],
    other_points: u64,
) -> Result<Option<Part>, String> {
    let kept: Vec<bool> = match which {
        Forward::None => return Ok(None),
        Forward::Rest => fates.iter().map(|fate| is_rest(*fate)).collect(),
        Forward::All => vec![true; fates.len()],
    };
    take(input, &kept, other_points, true)
}

/// The late items.
///
/// # Errors
/// Says why the input cannot be taken apart.
pub(super) fn late(input: Input<'_>, fates: &[Fate]) -> Result<Option<Part>, String> {
    let kept: Vec<bool> = fates.iter().map(|fate| *fate == Fate::Late).collect();
    take(input, &kept, 0, false)
}

fn take(input: Input<'_>, items: &[bool], other_points: u64, others: bool) -> Result<Option<Part>, String> {
    let count = items.iter().filter(|item| **item).count() as u64 + other_points;
    if count == 0 {
        return Ok(None);
    }
    let is_all = others && items.iter().all(|item| *item);
    let kept = Kept { items, others };
    let payload = match input {
        Input::Records(records) if is_all => Some(records.clone().into()),
        Input::Records(records) => {
            forward::records(records, kept).map_err(|error| error.to_string())?.map(OtapPayload::from)
        }
        Input::Otlp(signal, request) => {
            let bytes = if is_all {
                Some(request.clone())
            } else {
                forward::otlp(signal, request, kept).map_err(|error| error.to_string())?.map(bytes::Bytes::from)
            };
            bytes.map(|bytes| otlp_payload(signal, bytes))
        }
    };
    Ok(payload.map(|payload| (payload, count)))
}

/// A request as a payload.
fn otlp_payload(signal: OtlpSignal, bytes: bytes::Bytes) -> OtapPayload {
    let signal = match signal {
        OtlpSignal::Logs => SignalType::Logs,
        OtlpSignal::Metrics => SignalType::Metrics,
    };
    catchment_columns::OtlpProtoBytes::new_from_bytes(signal, bytes).into()
}
