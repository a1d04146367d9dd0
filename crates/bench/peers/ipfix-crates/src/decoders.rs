//! The crates behind one interface.

use std::error::Error;
use std::hint::black_box;

use netflow_parser::variable_versions::field_value::{DataNumber, FieldValue};
use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::variable_versions::ipfix::lookup::{IANAIPFixField, IPFixField};
use netflow_parser::{NetflowPacket, NetflowParser as Parser};
use netgauze_flow_pkt::ie::Field;
use netgauze_flow_pkt::ipfix::{IpfixPacket, Set, TemplatesMap};
use netgauze_parse_utils::reader::SliceReader;
use netgauze_parse_utils::traits::ParseFromWithOneInput;

use super::Sum;

/// What was decoded.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) items: u64,
    pub(crate) sum: u64,
}

impl Tally {
    fn record(&mut self, kind: Sum) {
        self.items += u64::from(kind == Sum::Flows);
    }

    fn octets_or_packets(&mut self, kind: Sum, value: u64) {
        if kind == Sum::Flows {
            self.sum = self.sum.wrapping_add(value);
        }
    }

    fn counter(&mut self, kind: Sum, value: u64) {
        if kind == Sum::Counters {
            self.items += 1;
            self.sum = self.sum.wrapping_add(value);
        }
    }
}

/// A decoder with the templates that it has learned.
pub(crate) trait Decoder {
    /// Decodes a message into the records of the crate, which are counted if there is a tally, and dropped.
    fn decode(&mut self, message: &[u8], tally: Option<(Sum, &mut Tally)>) -> Result<(), Box<dyn Error>>;
}

/// Crate netflow_parser.
pub(crate) struct NetflowParser(Parser);

impl NetflowParser {
    /// With limits that the largest message here does not meet.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let parser = Parser::builder().with_max_field_count(10_000).with_max_template_total_size(1 << 20);
        Ok(Self(parser.build()?))
    }
}

impl Decoder for NetflowParser {
    fn decode(&mut self, message: &[u8], tally: Option<(Sum, &mut Tally)>) -> Result<(), Box<dyn Error>> {
        let result = black_box(self.0.parse_bytes(message));
        if let Some(error) = result.error {
            return Err(error.to_string().into());
        }
        let Some((kind, tally)) = tally else { return Ok(()) };
        for packet in &result.packets {
            let NetflowPacket::IPFix(packet) = packet else { return Err("not ipfix".into()) };
            for set in &packet.flowsets {
                let records = match &set.body {
                    FlowSetBody::Data(data) => &data.fields,
                    FlowSetBody::OptionsData(data) => &data.fields,
                    FlowSetBody::NoTemplate(_) => return Err("a data set without a template".into()),
                    _ => continue,
                };
                for record in records {
                    tally.record(kind);
                    for (field, value) in record {
                        match field {
                            IPFixField::IANA(IANAIPFixField::OctetDeltaCount | IANAIPFixField::PacketDeltaCount) => {
                                tally.octets_or_packets(kind, number(value));
                            }
                            IPFixField::Enterprise { .. } => tally.counter(kind, number(value)),
                            _ => {}
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn number(value: &FieldValue) -> u64 {
    match value {
        FieldValue::DataNumber(DataNumber::U8(number)) => (*number).into(),
        FieldValue::DataNumber(DataNumber::U16(number)) => (*number).into(),
        FieldValue::DataNumber(DataNumber::U24(number) | DataNumber::U32(number)) => (*number).into(),
        FieldValue::DataNumber(DataNumber::U64(number)) => *number,
        FieldValue::Vec(bytes) | FieldValue::DataNumber(DataNumber::Vec(bytes)) => big_endian(bytes),
        _ => 0,
    }
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Crate netgauze-flow-pkt.
#[derive(Default)]
pub(crate) struct Netgauze(TemplatesMap);

impl Decoder for Netgauze {
    fn decode(&mut self, message: &[u8], tally: Option<(Sum, &mut Tally)>) -> Result<(), Box<dyn Error>> {
        let packet = IpfixPacket::parse(&mut SliceReader::new(message), &mut self.0);
        let packet = black_box(packet).map_err(|error| format!("{error:?}"))?;
        let Some((kind, tally)) = tally else { return Ok(()) };
        for set in packet.sets() {
            let Set::Data { records, .. } = set else { continue };
            for record in records {
                tally.record(kind);
                for field in record.fields() {
                    match field {
                        Field::octetDeltaCount(value) | Field::packetDeltaCount(value) => {
                            tally.octets_or_packets(kind, *value);
                        }
                        Field::Unknown { value, .. } => tally.counter(kind, big_endian(value)),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }
}
