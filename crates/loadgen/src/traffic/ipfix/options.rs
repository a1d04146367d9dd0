//! Options data: what an exporter tells of itself.

use super::FlowProtocol;
use super::fields::{Field, INTERFACES, SAMPLER, ie};
use super::wire::{append_options_template, begin_set, end_set};

/// Ids of the options templates.
const SAMPLER_TEMPLATE: u16 = 1_024;
const INTERFACE_TEMPLATE: u16 = 1_025;
const SYSTEM_TEMPLATE: u16 = 1_026;
/// Bytes of a name, padded with NUL.
const NAME_BYTES: u16 = 16;

/// Scopes of v9 (RFC 3954 section 6.1).
const SCOPE_SYSTEM: u16 = 1;
const SCOPE_INTERFACE: u16 = 2;

/// What is told.
pub(super) struct OptionsData {
    pub(super) protocol: FlowProtocol,
    pub(super) domain: u32,
    pub(super) sampling_interval: u16,
    /// Milliseconds since the Unix epoch.
    pub(super) system_init_ms: u64,
}

fn field(id: u16, bytes: u16) -> Field {
    Field { id, bytes }
}

impl OptionsData {
    /// Templates in a message.
    pub(super) fn templates(&self) -> u16 {
        if self.protocol == FlowProtocol::Ipfix { 3 } else { 2 }
    }

    /// Data records in a message.
    pub(super) fn records(&self) -> u16 {
        INTERFACES + self.templates() - 1
    }

    /// Appends the sets.
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        match self.protocol {
            FlowProtocol::Ipfix => {
                self.append_ipfix_sampler(out);
                self.append_system(out);
            }
            FlowProtocol::NetflowV9 | FlowProtocol::NetflowV5 => self.append_v9_sampler(out),
        }
        self.append_interfaces(out);
    }

    /// Systematic sampling of packets (RFC 5477 sections 8.2.1 and 8.2.2): one, then so many that are left out.
    fn append_ipfix_sampler(&self, out: &mut Vec<u8>) {
        let fields = [field(ie::SELECTOR_ALGORITHM, 2), field(ie::SAMPLING_INTERVAL, 4), field(ie::SAMPLING_SPACE, 4)];
        append_options_template(out, self.protocol, SAMPLER_TEMPLATE, &[field(ie::SELECTOR, 4)], &fields);
        let set = begin_set(out, SAMPLER_TEMPLATE);
        out.extend(u32::from(SAMPLER).to_be_bytes());
        out.extend(1_u16.to_be_bytes());
        out.extend(1_u32.to_be_bytes());
        out.extend((u32::from(self.sampling_interval) - 1).to_be_bytes());
        end_set(out, set, self.protocol);
    }

    /// The start of the exporter, the base of its uptime.
    fn append_system(&self, out: &mut Vec<u8>) {
        let (scope, fields) = ([field(ie::OBSERVATION_DOMAIN, 4)], [field(ie::SYSTEM_INIT_MS, 8)]);
        append_options_template(out, self.protocol, SYSTEM_TEMPLATE, &scope, &fields);
        let set = begin_set(out, SYSTEM_TEMPLATE);
        out.extend(self.domain.to_be_bytes());
        out.extend(self.system_init_ms.to_be_bytes());
        end_set(out, set, self.protocol);
    }

    /// Random sampling of one packet in so many.
    fn append_v9_sampler(&self, out: &mut Vec<u8>) {
        let fields = [field(ie::SAMPLER_ID, 2), field(ie::SAMPLER_MODE, 1), field(ie::SAMPLER_INTERVAL, 4)];
        append_options_template(out, self.protocol, SAMPLER_TEMPLATE, &[field(SCOPE_SYSTEM, 4)], &fields);
        let set = begin_set(out, SAMPLER_TEMPLATE);
        out.extend(self.domain.to_be_bytes());
        out.extend(u16::from(SAMPLER).to_be_bytes());
        out.push(2);
        out.extend(u32::from(self.sampling_interval).to_be_bytes());
        end_set(out, set, self.protocol);
    }

    fn append_interfaces(&self, out: &mut Vec<u8>) {
        let scope = match self.protocol {
            FlowProtocol::Ipfix => field(ie::INGRESS, 4),
            FlowProtocol::NetflowV9 | FlowProtocol::NetflowV5 => field(SCOPE_INTERFACE, 4),
        };
        let fields = [field(ie::INTERFACE_NAME, NAME_BYTES)];
        append_options_template(out, self.protocol, INTERFACE_TEMPLATE, &[scope], &fields);
        let set = begin_set(out, INTERFACE_TEMPLATE);
        for index in 1..=INTERFACES {
            out.extend(u32::from(index).to_be_bytes());
            let mut name = interface_name(index).into_bytes();
            name.resize(NAME_BYTES.into(), 0);
            out.extend(name);
        }
        end_set(out, set, self.protocol);
    }
}

/// Name of an interface, shorter than [`NAME_BYTES`].
pub(super) fn interface_name(index: u16) -> String {
    format!("Te0/0/0/{}", index - 1)
}
