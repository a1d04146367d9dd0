use super::*;
use crate::field::FieldSpec;
use crate::knowledge::SamplingKey;
use crate::message::parse_header;
use crate::session::{Limits, Session, Transport};
use crate::template::Kind;
use crate::test_wire::{ipfix, options_template, set, template};
use crate::{Admitted, netflow_v5_template};

fn message() -> MessageInfo {
    let header = [0, 10, 0, 16, 0x6a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    parse_header(&header, 0).expect("a header")
}

fn plan(fields: &[(u16, u16)]) -> (Template, SamplingFields) {
    let specs = fields.iter().map(|&(id, length)| FieldSpec::ipfix(id, 0, length, false));
    let template = Template::new(256, Kind::Flow, specs.collect()).expect("a template");
    let plan = SamplingFields::new(&template);
    (template, plan)
}

/// Rates in the record itself, in templates with and without values of variable length.
#[test]
fn own_rates() {
    let message = message();
    let rate = |fields: &[(u16, u16)], bytes: &[u8]| {
        let (template, plan) = plan(fields);
        assert!(!plan.is_constant(None));
        let record = crate::Records::new(&template, bytes).next().expect("a record");
        plan.rate(&record, &message, None, &message.context())
    };
    assert_eq!(rate(&[(4, 1), (34, 2)], &[6, 0, 100]), Some(100.0));
    assert_eq!(rate(&[(82, 65_535), (305, 1), (306, 1)], &[1, b'x', 2, 6]), Some(4.0));
    assert_eq!(rate(&[(34, 1)], &[0]), None);
}

/// A template without any of the fields asks once; with an interface only if options data tells interfaces apart.
#[test]
fn constant_rates() {
    let (_, nothing) = plan(&[(4, 1)]);
    let (_, interface) = plan(&[(10, 4)]);
    let mut session = Session::new(Transport::Udp, Limits::default());
    let mut told = |scopes: &[(u16, u16)], record: &[u8]| {
        let mut out = Admitted::default();
        let sets = [options_template(257, 1, scopes), set(257, record), template(256, &[(4, 1)]), set(256, &[6])];
        session.admit(&ipfix(&sets), &mut out);
        out.sets[1].knowledge.clone().expect("knowledge")
    };
    let whole = told(&[(149, 1), (34, 1)], &[0, 10]);
    assert!(nothing.is_constant(Some(&whole)) && interface.is_constant(Some(&whole)) && interface.is_constant(None));
    let by_interface = told(&[(10, 1), (34, 1)], &[5, 20]);
    assert!(nothing.is_constant(Some(&by_interface)) && !interface.is_constant(Some(&by_interface)));
}

/// Options data counts when the record says nothing itself, by the interface that it names.
#[test]
fn rates_of_options_data() {
    let mut session = Session::new(Transport::Udp, Limits::default());
    let mut out = Admitted::default();
    let message = ipfix(&[
        options_template(257, 1, &[(10, 1), (34, 1)]),
        set(257, &[5, 20, 6, 30]),
        template(256, &[(10, 1), (14, 1), (34, 1)]),
        set(256, &[5, 6, 0, 9, 6, 0, 9, 9, 0, 9, 9, 7]),
    ]);
    session.admit(&message, &mut out);
    let set = &out.sets[1];
    let plan = SamplingFields::new(&set.template);
    let info = &out.messages[0];
    let knowledge = set.knowledge.as_deref();
    let rates: Vec<_> =
        set.records(&message).map(|record| plan.rate(&record, info, knowledge, &set.context(info))).collect();
    assert_eq!(rates, [Some(20.0), Some(30.0), None, Some(7.0)]);
    assert_eq!(knowledge.and_then(|known| known.sampling_rate(&SamplingKey::default())), None);
}

/// The header of NetFlow v5 gives the rate of its records.
#[test]
fn netflow_v5() {
    let mut message = MessageInfo { sampling: Some(0x4000 | 64), ..message() };
    let template = netflow_v5_template();
    let plan = SamplingFields::new(template);
    let record = crate::Records::new(template, &[0; 48]).next().expect("a record");
    assert_eq!(plan.rate(&record, &message, None, &message.context()), Some(64.0));
    message.sampling = Some(0x4000);
    assert_eq!(plan.rate(&record, &message, None, &message.context()), None, "an interval of 0 is not known");
}
