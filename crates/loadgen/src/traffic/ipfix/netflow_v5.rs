//! NetFlow v5: a header of 24 bytes and records of 48.

use super::fields::{Flow, ie};
use super::{FLOW_STEP_MS, FlowExporter};

/// Records in a packet at most.
pub(super) const MAX_RECORDS: usize = 30;
/// Sampling of one packet in so many, in the upper two bits of the header's last field.
const SAMPLED: u16 = 0x4000;

impl FlowExporter {
    /// Appends a packet; its first flow ends at `first_end_ms`.
    pub(super) fn append_v5(&mut self, out: &mut Vec<u8>, first_end_ms: u64) {
        let sampling = if self.options.options_every > 0 { SAMPLED | self.options.sampling_interval } else { 0 };
        out.extend(5_u16.to_be_bytes());
        out.extend((self.records_per_message as u16).to_be_bytes());
        out.extend(self.uptime_ms(self.now_ms).to_be_bytes());
        out.extend(((self.now_ms / 1_000) as u32).to_be_bytes());
        out.extend(((self.now_ms % 1_000 * 1_000_000) as u32).to_be_bytes());
        // Flows sent before this packet.
        out.extend((self.records_sent as u32).to_be_bytes());
        out.extend((self.options.observation_domain as u16).to_be_bytes());
        out.extend(sampling.to_be_bytes());
        for index in 0..self.records_per_message as u64 {
            let flow = Flow::new(first_end_ms + index * FLOW_STEP_MS, &mut self.random);
            self.append_v5_record(out, &flow);
        }
    }

    fn append_v5_record(&self, out: &mut Vec<u8>, flow: &Flow) {
        out.extend(flow.source);
        out.extend(flow.destination);
        out.extend((flow.value(ie::BGP_NEXT_HOP) as u32).to_be_bytes());
        out.extend((flow.ingress as u16).to_be_bytes());
        out.extend((flow.egress as u16).to_be_bytes());
        out.extend((flow.packets as u32).to_be_bytes());
        out.extend((flow.octets as u32).to_be_bytes());
        out.extend(self.uptime_ms(flow.start_ms).to_be_bytes());
        out.extend(self.uptime_ms(flow.end_ms).to_be_bytes());
        out.extend(flow.source_port.to_be_bytes());
        out.extend(flow.destination_port.to_be_bytes());
        // A byte of padding, and best effort as the type of service.
        out.extend([0, flow.tcp_flags, flow.protocol, 0]);
        out.extend((flow.source_as as u16).to_be_bytes());
        out.extend((flow.destination_as as u16).to_be_bytes());
        out.extend([flow.value(ie::SOURCE_MASK) as u8, flow.value(ie::DESTINATION_MASK) as u8, 0, 0]);
    }
}
