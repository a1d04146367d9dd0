//! Target for what is learned from options data.

use std::sync::Arc;

use catchment_ipfix::{
    Admitted, Knowledge, Limits, SamplingFields, SamplingKey, Session, TimeEncoding, Transport, enumeration_name,
};

use crate::ipfix::{check_admitted, message, template};

/// Elements that options data is learned from, and a few that it is not.
const ELEMENTS: [u16; 32] = [
    34, 50, 305, 306, 309, 310, 311, 48, 302, 10, 14, 252, 253, 141, 145, 234, 235, 236, 82, 83, 95, 96, 94, 160, 303,
    346, 339, 344, 345, 341, 149, 210,
];

/// Learns from an options template and two sets of records, each followed by flows that the facts may be about.
///
/// The first byte gives the number of scope fields and the number of fields, then come the fields as a number of an
/// element in a table and a length each (255 is a variable one), then the records, the first half of them for the
/// first set.
///
/// Asserted: rates are numbers above 0, names are short and not empty, a rate that is said to be constant is the same
/// for all records, and what was given out before stays as it was.
pub fn ipfix_options(input: &[u8]) {
    let Some((&counts, rest)) = input.split_first() else {
        return;
    };
    let count = usize::from(counts >> 4).max(1).min(rest.len() / 2);
    let (specs, records) = rest.split_at(2 * count);
    let fields: Vec<(u16, u16)> = specs
        .chunks_exact(2)
        .map(|spec| {
            let length = if spec[1] == 255 { u16::MAX } else { u16::from(spec[1]) };
            (ELEMENTS[usize::from(spec[0]) % ELEMENTS.len()], length)
        })
        .collect();
    let scopes = u16::from(counts & 15).min(count as u16);
    let mut options = template(257, &fields);
    let _: Vec<u8> = options.splice(4..4, scopes.to_be_bytes()).collect();
    let flows = template(256, &[(10, 1), (14, 1), (48, 1), (141, 1), (305, 1), (306, 1)]);
    let flow_records: Vec<u8> = (0..4).flat_map(|value| [value, 1, value, value, value % 2, 9]).collect();
    let short = &records[..records.len().min(50_000)];
    let (first, second) = short.split_at(short.len() / 2);

    let mut session = Session::new(Transport::Udp, Limits { max_facts: 64, ..Limits::default() });
    let mut seen: Vec<(Arc<Knowledge>, Vec<String>)> = Vec::new();
    for records in [first, second] {
        let sets: [(u16, &[u8]); 5] =
            [(3, &options), (2, &flows), (256, &flow_records), (257, records), (256, &flow_records)];
        let datagram = message(&sets);
        let mut admitted = Admitted::default();
        session.admit(&datagram, &mut admitted);
        check_admitted(&datagram, &admitted, &Limits::default(), TimeEncoding::Auto);
        for set in &admitted.sets {
            let info = &admitted.messages[set.message];
            let (plan, knowledge) = (SamplingFields::new(&set.template), set.knowledge.as_deref());
            let rate = |record| plan.rate(&record, info, knowledge, &set.context(info));
            let rates: Vec<Option<f64>> = set.records(&datagram).map(rate).collect();
            assert!(rates.iter().flatten().all(|&rate| rate.is_finite() && rate > 0.0));
            assert!(!plan.is_constant(knowledge) || rates.windows(2).all(|pair| pair[0] == pair[1]));
            for record in set.records(&datagram) {
                for (field, bytes) in record.fields() {
                    let _ = enumeration_name(field, bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)));
                }
            }
            if let Some(knowledge) = &set.knowledge {
                seen.push((Arc::clone(knowledge), answers(knowledge)));
            }
        }
    }
    for (knowledge, before) in seen {
        assert_eq!(answers(&knowledge), before, "a snapshot changed");
    }
}

/// What knowledge says to questions of all kinds.
fn answers(knowledge: &Knowledge) -> Vec<String> {
    let mut answers = vec![format!("{:?} {}", knowledge.system_init_unix_nano(), knowledge.elements_generation())];
    for number in 0..16_u16 {
        let wide = u64::from(number);
        let mut rates = Vec::new();
        for change in [
            |key: &mut SamplingKey, number| key.selector = Some(number),
            |key: &mut SamplingKey, number| key.ingress_interface = Some(number),
            |key: &mut SamplingKey, number| key.line_card = Some(number),
            |key: &mut SamplingKey, number| key.template_id = number as u16,
        ] {
            let mut key = SamplingKey::default();
            change(&mut key, wide);
            rates.push(knowledge.sampling_rate(&key));
        }
        let id = u32::from(number).to_be_bytes();
        let element = knowledge.element(u32::from(number), number);
        let names = [
            knowledge.interface_name(wide),
            knowledge.vrf_name(wide),
            knowledge.application_name(&id),
            element.map(|element| element.name.as_str()),
        ];
        assert!(names.iter().flatten().all(|name| !name.is_empty() && name.len() <= 256));
        answers.push(format!("{rates:?} {names:?}"));
    }
    answers
}
