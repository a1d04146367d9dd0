//! What is sent.

use catchment_loadgen::traffic::{FlowExporter, FlowFields, FlowOptions, FlowProtocol, Payloads};

use super::super::messages::Messages;

/// Log lines of requests, of some 250 bytes: 512 pairs of host and program, each line of a trace of its own that is not
/// sampled.
pub(super) fn lines(count: u64) -> Messages {
    Messages::record(Payloads((0..count).map(line)), count)
}

/// Flow records, as many in a message as a packet of 1,500 bytes holds.
pub(super) fn flows(fields: FlowFields, records: u64) -> Result<Messages, Box<dyn std::error::Error>> {
    let exporter = FlowExporter::new(FlowOptions::new(FlowProtocol::Ipfix, fields, 1, 0))?;
    Ok(Messages::record(exporter, records))
}

fn line(number: u64) -> String {
    // All bits depend on all of the number.
    let mixed = (number ^ (number >> 30)).wrapping_add(1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    format!(
        "<134>1 2026-11-30T10:31:00.{:06}Z web-{:02}.example.com shop-{} 4711 REQ [http@32473 time_ms=\"{}\" status=\"200\" \
         traceparent=\"00-{mixed:016x}{number:016x}-{:016x}-00\"] \"GET /catalogue/item/{} HTTP/1.1\" from 192.0.2.{} took its time",
        number % 1_000_000,
        mixed % 64,
        (mixed >> 8) % 8,
        (mixed >> 16) % 2_000,
        mixed | 1,
        (mixed >> 24) % 100_000,
        (mixed >> 40) % 254 + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines are of the size that the table says, and different.
    #[test]
    fn sizes() {
        let lines: std::collections::BTreeSet<String> = (0..1_000).map(line).collect();
        assert_eq!(lines.len(), 1_000);
        assert!(lines.iter().all(|line| (230..=270).contains(&line.len())), "{:?}", lines.first());
    }
}
