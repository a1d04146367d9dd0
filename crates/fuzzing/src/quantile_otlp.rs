//! Targets for OTLP requests that are read as they are: observations, what goes on of them, and sketches.

use catchment_columns::quantile::carrier::{self, SketchMessage};
use catchment_columns::quantile::forward;
use catchment_columns::quantile::{
    AttributePath, Kept, Observations, OtlpSignal, Place, Query, Reader, TextNumbers, ValueSource,
};

const NOW: i64 = 1_800_000_000_000_000_000;

fn path(place: Place, key: &str, steps: &[&str]) -> AttributePath {
    AttributePath { place, key: key.into(), steps: steps.iter().map(|step| (*step).into()).collect() }
}

fn query(signal: OtlpSignal) -> Query {
    let source = match signal {
        OtlpSignal::Logs => {
            ValueSource::LogAttribute { attribute: path(Place::Record, "v", &[]), text: TextNumbers::Decimal }
        }
        OtlpSignal::Metrics => ValueSource::Metric { names: vec!["m*".into()] },
    };
    let weight_from = Some(path(Place::Record, "w", &[]));
    let group_by =
        vec![path(Place::Record, "g", &["a", "0"]), path(Place::Resource, "r", &[]), path(Place::Scope, "s", &[])];
    Query { weight_from, ..Query::new(source).grouped_by(group_by) }
}

fn read(signal: OtlpSignal, request: &[u8]) -> Option<Observations> {
    let mut reader = Reader::new(query(signal), 4);
    let mut out = Observations::default();
    match reader.read_otlp(signal, request, NOW, &mut out) {
        Ok(()) => {
            assert!(out.series.iter().all(|series| reader.series(*series).len() == 3));
            Some(out)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(out.fates.is_empty() && out.values.is_empty(), "nothing is observed");
            None
        }
    }
}

/// Reads an OTLP request as observations and takes some of its items out. The first byte is the signal and whether what
/// is no item goes on, the second which of every eight items do.
///
/// Asserted: observations have all their columns, a fate for each item and no more items than bytes; what goes on is
/// not longer than the request, holds as many items as were kept, and stays as it is when all of it goes on; nothing goes
/// on if nothing is kept.
pub fn quantile_otlp(input: &[u8]) {
    let Some((&[options, pattern], request)) = input.split_first_chunk::<2>() else { return };
    let signal = if options & 1 == 0 { OtlpSignal::Logs } else { OtlpSignal::Metrics };
    let others = options & 2 == 2;
    let observed = read(signal, request);
    let items = observed.as_ref().map_or(64, |observed| observed.fates.len());
    if let Some(observed) = &observed {
        assert!(items <= request.len());
        let used = observed.values.len();
        for column in [observed.times.len(), observed.items.len(), observed.groups.len()] {
            assert!(column == used && used <= items);
        }
        assert!(observed.weights.is_empty() || observed.weights.len() == used);
        assert!(observed.groups.iter().all(|group| (*group as usize) < observed.series.len()));
        assert!(observed.items.iter().all(|item| (*item as usize) < items));
    }
    let kept: Vec<bool> = (0..items).map(|item| pattern >> (item % 8) & 1 == 1).collect();
    let Ok(onward) = forward::otlp(signal, request, Kept { items: &kept, others }) else {
        assert!(observed.is_none(), "what can be read can be taken apart");
        return;
    };
    let Some(onward) = onward else {
        assert!(observed.is_none() || !kept.contains(&true));
        return;
    };
    assert!(onward.len() <= request.len());
    let again = forward::otlp(signal, &onward, Kept { items: &[], others: true });
    assert!(matches!(again, Ok(Some(again)) if again == onward), "all of what was kept is kept");
    if observed.is_some() {
        let of_onward = read(signal, &onward).expect("what was read before");
        assert_eq!(of_onward.fates.len(), kept.iter().filter(|kept| **kept).count());
    }
}

/// Reads an OTLP request as sketches.
///
/// Asserted: envelopes are bytes of the request, numbers of parts make sense, and what was read is the same after it has
/// been written, but for the order.
pub fn quantile_carrier(request: &[u8]) {
    let found = carrier::decode_otlp(request);
    assert!(found.len() <= request.len() + 1);
    let mut messages: Vec<SketchMessage> = Vec::new();
    for message in found {
        match message {
            Ok(message) => messages.push(message),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let bytes: usize = messages.iter().map(|message| message.envelope.len()).sum();
    assert!(bytes <= request.len());
    if messages.is_empty() {
        return;
    }
    let records = carrier::encode(&messages).expect("few messages");
    let again = carrier::decode(&records).expect("tables of our own making");
    let again = again.into_iter().map(|message| message.expect("a message of our own making")).collect();
    // Those of one kind are together.
    assert_eq!(sorted(again), sorted(messages));
}

fn sorted(messages: Vec<SketchMessage>) -> Vec<String> {
    let mut texts: Vec<String> = messages.iter().map(|message| format!("{message:?}")).collect();
    texts.sort_unstable();
    texts
}
