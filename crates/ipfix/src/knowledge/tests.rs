use super::*;
use crate::field::FieldSpec;
use crate::message::parse_header;
use crate::template::{Kind, Template};

fn context() -> crate::DecodeContext {
    let header = [0, 10, 0, 16, 0x6a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    parse_header(&header, 0).expect("a header").context()
}

fn teller(session: u64) -> Teller {
    Teller { session, established: false }
}

/// Learns one options record of the given elements and values for a session and domain.
fn learn(shared: &Arc<AddressKnowledge>, session: u64, domain: u32, fields: &[(u16, &[u8])]) {
    let specs = fields.iter().map(|(id, bytes)| FieldSpec::ipfix(*id, 0, bytes.len() as u16, false));
    let template = Template::new(256, Kind::Options, specs.collect()).expect("a template");
    let bytes: Vec<u8> = fields.iter().flat_map(|(_, bytes)| bytes.to_vec()).collect();
    let mut part = SessionKnowledge::new(Arc::clone(shared), teller(session), 1_000);
    let plan = template.options_plan().expect("options that say something");
    assert_eq!(part.learn(domain, plan, &template, &bytes, &context()), 0);
    // What it has learned is to outlive it here.
    std::mem::forget(part);
}

fn known(shared: &Arc<AddressKnowledge>, session: u64, domain: u32) -> Arc<Knowledge> {
    let mut part = SessionKnowledge::new(Arc::clone(shared), teller(session), 0);
    part.view(domain).expect("knowledge")
}

/// Knowledge after one record.
fn told(fields: &[(u16, &[u8])]) -> Arc<Knowledge> {
    let shared = Arc::default();
    learn(&shared, 1, 1, fields);
    known(&shared, 1, 1)
}

fn rate(knowledge: &Knowledge, change: impl FnOnce(&mut SamplingKey)) -> Option<f64> {
    let mut key = SamplingKey::default();
    change(&mut key);
    knowledge.sampling_rate(&key)
}

/// Every form of a rate; a rate of 0 is none.
#[test]
fn forms_of_rates() {
    let half = 0.5_f64.to_be_bytes();
    type Fields<'a> = &'a [(u16, &'a [u8])];
    let forms: [(Fields<'_>, Option<f64>); 12] = [
        (&[(34, &[0, 100])], Some(100.0)),
        (&[(34, &[0, 0])], None),
        (&[(34, &[0, 0]), (50, &[7])], Some(7.0)),
        (&[(305, &[1]), (306, &[9])], Some(10.0)),
        (&[(305, &[2]), (306, &[0])], Some(1.0)),
        (&[(305, &[1])], None),
        (&[(305, &[0]), (306, &[9])], None),
        (&[(305, &[1]), (309, &[1]), (310, &[1, 0])], Some(256.0)),
        (&[(309, &[0]), (310, &[5])], None),
        (&[(311, &half)], Some(2.0)),
        (&[(311, &[0; 8])], None),
        (&[(311, &2.0_f64.to_be_bytes())], None),
    ];
    for (fields, expected) in forms {
        let shared = Arc::default();
        learn(&shared, 1, 1, fields);
        // A record without a rate leaves nothing to know.
        let knowledge = SessionKnowledge::new(shared, teller(1), 0).view(1);
        assert_eq!(knowledge.and_then(|known| rate(&known, |_| {})), expected, "{fields:?}");
    }
}

/// Rates are found by selector, interface, line card and template, in this order.
#[test]
fn rates_by_what_the_record_names() {
    let shared = Arc::default();
    learn(&shared, 1, 1, &[(48, &[3]), (34, &[10])]);
    learn(&shared, 1, 1, &[(302, &[4]), (34, &[20])]);
    learn(&shared, 1, 1, &[(10, &[5]), (34, &[30])]);
    learn(&shared, 1, 1, &[(141, &[6]), (34, &[40])]);
    learn(&shared, 1, 1, &[(145, &[1, 7]), (34, &[50])]);
    let knowledge = known(&shared, 1, 1);
    assert!(knowledge.sampling_depends_on_record());
    assert_eq!(rate(&knowledge, |key| key.selector = Some(3)), Some(10.0));
    assert_eq!(rate(&knowledge, |key| (key.selector, key.ingress_interface) = (Some(4), Some(5))), Some(20.0));
    assert_eq!(rate(&knowledge, |key| key.ingress_interface = Some(5)), Some(30.0));
    assert_eq!(rate(&knowledge, |key| key.egress_interface = Some(5)), Some(30.0));
    assert_eq!(rate(&knowledge, |key| key.line_card = Some(6)), Some(40.0));
    assert_eq!(rate(&knowledge, |key| key.template_id = 263), Some(50.0));
    assert_eq!(rate(&knowledge, |key| key.selector = Some(9)), None, "not described");
    assert_eq!(rate(&knowledge, |_| {}), None, "samplers of different rates");
}

/// The only sampler is that of records that name none; one for the whole exporter is that of all.
#[test]
fn the_only_sampler() {
    let only = told(&[(48, &[1]), (34, &[100])]);
    assert_eq!(rate(&only, |_| {}), Some(100.0));
    assert_eq!(rate(&only, |key| key.selector = Some(2)), None, "another sampler");
    let whole = told(&[(34, &[100])]);
    assert_eq!(rate(&whole, |key| key.selector = Some(2)), Some(100.0));
    assert!(only.sampling_depends_on_record() && !whole.sampling_depends_on_record());
}

/// Whether all samplers agree, and whether any is for some records only, follows every change.
#[test]
fn samplers_change() {
    let shared = Arc::default();
    let rates = |expected: Option<f64>, depends: bool| {
        let knowledge = known(&shared, 1, 1);
        assert_eq!((rate(&knowledge, |_| {}), knowledge.sampling_depends_on_record()), (expected, depends));
    };
    let sampler = |id: u8, rate: u8| learn(&shared, 1, 1, &[(48, &[id]), (34, &[rate])]);
    sampler(1, 100);
    sampler(2, 100);
    rates(Some(100.0), true);
    sampler(2, 5);
    rates(None, true);
    sampler(1, 5);
    rates(Some(5.0), true);
    learn(&shared, 1, 1, &[(145, &[1, 0]), (34, &[7])]);
    rates(None, true);
    sampler(1, 0);
    sampler(2, 0);
    rates(Some(7.0), false);
}

/// A sampler that is switched off is forgotten.
#[test]
fn samplers_end() {
    let shared = Arc::default();
    learn(&shared, 1, 1, &[(48, &[1]), (34, &[100])]);
    learn(&shared, 1, 1, &[(48, &[2]), (34, &[5])]);
    learn(&shared, 1, 1, &[(48, &[1]), (34, &[0])]);
    let knowledge = known(&shared, 1, 1);
    assert_eq!(rate(&knowledge, |key| key.selector = Some(1)), None);
    assert_eq!(rate(&knowledge, |_| {}), Some(5.0));
}

/// Names: the short one before the description, by any of the numbers that it may go by.
#[test]
fn names() {
    let interface = |fields: &[(u16, &[u8])]| told(fields).interface_name(5).map(str::to_owned);
    assert_eq!(interface(&[(10, &[5]), (83, b"uplink"), (82, b"eth5\0")]).as_deref(), Some("eth5"));
    assert_eq!(interface(&[(252, &[0, 5]), (83, b"uplink")]).as_deref(), Some("uplink"));
    assert_eq!(interface(&[(14, &[5]), (82, b"\0\0"), (83, b"uplink")]).as_deref(), Some("uplink"));
    assert_eq!(interface(&[(253, &[5]), (82, &[0xff, b'x'])]).as_deref(), Some("\u{fffd}x"));
    let vrf = told(&[(234, &[0x60, 0]), (236, b"red\0"), (235, &[0x60, 0])]);
    assert_eq!(vrf.vrf_name(0x6000), Some("red"));
    let application = told(&[(95, &[1, 0, 0, 8]), (94, b"Exterior Gateway Protocol"), (96, b"egp")]);
    assert_eq!(application.application_name(&[1, 0, 0, 8]), Some("egp"));
    assert_eq!(application.application_name(&[1, 0, 0, 9]), None);
    let long = vec![b'x'; 400];
    let cut = told(&[(10, &[5]), (82, &long)]);
    assert_eq!(cut.interface_name(5).map(str::len), Some(MAX_NAME_BYTES));
}

/// Descriptions of elements, with numbers for type and semantics; each change changes the generation.
#[test]
fn elements() {
    let shared = Arc::default();
    learn(&shared, 1, 1, &[(34, &[1])]);
    assert_eq!(known(&shared, 1, 1).elements_generation(), 0);
    let (enterprise, id): (&[u8], &[u8]) = (&[0, 0, 0xff, 0xff], &[0x80, 9]);
    let describe = |name: &[u8]| {
        learn(&shared, 1, 1, &[(346, enterprise), (303, id), (339, &[4]), (344, &[3]), (345, &[2]), (341, name)]);
        known(&shared, 1, 1)
    };
    let first = describe(b"octets");
    let element = first.element(0xffff, 9).expect("an element");
    assert_eq!((element.name.as_str(), element.data_type), ("octets", DataType::Unsigned64));
    assert_eq!(element.semantics, Semantics::DeltaCounter);
    assert_eq!(describe(b"octets").elements_generation(), first.elements_generation());
    let second = describe(b"bytes");
    assert!(![0, first.elements_generation()].contains(&second.elements_generation()));
    assert_eq!(second.element(0xffff, 9).map(|element| element.name.as_str()), Some("bytes"));
}

/// Own session and domain first, then the domain in other sessions, then the rest of the address.
#[test]
fn order_of_lookup() {
    let shared = Arc::default();
    let name = |session, domain| known(&shared, session, domain).interface_name(5).map(str::to_owned);
    learn(&shared, 1, 9, &[(10, &[5]), (82, b"other domain")]);
    assert_eq!(name(2, 7).as_deref(), Some("other domain"));
    learn(&shared, 2, 8, &[(10, &[5]), (82, b"own session")]);
    assert_eq!(name(2, 7).as_deref(), Some("own session"));
    learn(&shared, 1, 7, &[(10, &[5]), (82, b"own domain")]);
    assert_eq!(name(2, 7).as_deref(), Some("own domain"));
    learn(&shared, 2, 7, &[(10, &[5]), (82, b"own")]);
    assert_eq!(name(2, 7).as_deref(), Some("own"));
    assert_eq!(name(1, 9).as_deref(), Some("other domain"));
    assert!(shared.forget(2));
    assert_eq!(name(2, 7).as_deref(), Some("own domain"));
}

/// Options that say nothing of use have no plan.
#[test]
fn plans() {
    let plan = |ids: &[u16]| {
        let fields: Vec<FieldSpec> = ids.iter().map(|&id| FieldSpec::ipfix(id, 0, 4, false)).collect();
        OptionsPlan::new(&fields).is_some()
    };
    assert!(!plan(&[144, 40, 41, 42]) && !plan(&[82]) && !plan(&[10, 14]) && !plan(&[96]) && !plan(&[303, 339]));
    assert!(plan(&[160]) && plan(&[10, 82]) && plan(&[235, 236]) && plan(&[95, 94]) && plan(&[303, 341, 346]));
}

/// Sessions that look at old facts do not keep them alive: only snapshots that were given out do.
#[test]
fn old_views_are_let_go() {
    let shared = Arc::default();
    learn(&shared, 1, 1, &[(10, &[5]), (82, b"old")]);
    let mut silent = SessionKnowledge::new(Arc::clone(&shared), teller(2), 0);
    let given_out = silent.view(1).expect("knowledge");
    assert!(Arc::ptr_eq(&given_out, &silent.view(1).expect("knowledge")), "kept while nothing changes");
    let old = Arc::downgrade(&given_out);
    learn(&shared, 1, 1, &[(10, &[5]), (82, b"new")]);
    assert_eq!(given_out.interface_name(5), Some("old"));
    drop(given_out);
    assert!(old.upgrade().is_none());
    assert_eq!(silent.view(1).and_then(|known| known.interface_name(5).map(str::to_owned)).as_deref(), Some("new"));
}

/// What an established session tells comes before what a newer one does that is not, and has a place of its own.
#[test]
fn established_sessions_know_better() {
    let shared = Arc::default();
    learn(&shared, 1, 7, &[(10, &[5]), (82, b"real")]);
    for session in 10..200 {
        let facts = [Fact::Interface(5, "spoofed".into())];
        let learned = shared.learn(teller(session), 7, &facts, 10);
        assert_eq!((learned.more, learned.refused), if session < 73 { (1, 0) } else { (0, 1) });
    }
    let name = |session| known(&shared, session, 7).interface_name(5).map(str::to_owned);
    assert_eq!(name(2).as_deref(), Some("spoofed"), "the newest of newcomers");
    let mut real = SessionKnowledge::new(Arc::clone(&shared), teller(1), 10);
    real.establish();
    assert_eq!(name(2).as_deref(), Some("real"));
    let more = [Fact::Vrf(1, "red".into())];
    assert_eq!(shared.learn(Teller { session: 1, established: true }, 8, &more, 10).more, 1);
}
