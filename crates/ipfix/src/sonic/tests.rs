//! Rows, sessions that change, payloads and their times.

use proptest::prelude::*;

use super::*;
use crate::message::check_framing;

/// A message of sets.
fn message(domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    let mut bytes = vec![0, 10];
    bytes.extend(u16::try_from(16 + body.len()).expect("short").to_be_bytes());
    bytes.extend([0; 8]);
    bytes.extend(domain.to_be_bytes());
    [bytes, body].concat()
}

fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(u16::try_from(4 + content.len()).expect("short").to_be_bytes());
    [&bytes, content].concat()
}

/// A field: number with the enterprise bit if there is an enterprise number, length.
type Field = (u16, u16, Option<u32>);

const TIME: Field = (325, 8, None);

fn template(id: u16, fields: &[Field]) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(u16::try_from(fields.len()).expect("few").to_be_bytes());
    for (number, length, enterprise) in fields {
        bytes.extend((number | if enterprise.is_some() { 0x8000 } else { 0 }).to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(enterprise.iter().flat_map(|number| number.to_be_bytes()));
    }
    bytes
}

fn counter(label: u16) -> Field {
    (label, 8, Some(0x0001_0000))
}

fn row(names: &str, ids: &str, templates: &[Vec<u8>]) -> SessionRow {
    SessionRow {
        stream_status: "enabled".into(),
        session_type: "ipfix".into(),
        object_names: names.into(),
        object_ids: ids.into(),
        session_config: message(0, &[set(2, &templates.concat())]),
    }
}

fn record(time: u64, values: &[u64]) -> Vec<u8> {
    std::iter::once(&time).chain(values).flat_map(|value| value.to_be_bytes()).collect()
}

/// What came of a payload: template id, name of its first object, number of records, time of all.
type Seen = (u16, Option<String>, usize, Option<i64>);

fn admit(sessions: &mut SonicSessions, source: u64, payload: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let admitted = sessions.admit(source, payload, 99, |set| {
        assert_eq!(set.bytes.len(), set.records * set.template.record_length());
        let name = set.template.object_name(set.template.counters()[0].label).map(str::to_owned);
        seen.push((set.template.id(), name, set.records, set.time_unix_nano));
    });
    admitted.expect("admitted");
    seen
}

fn sessions() -> SonicSessions {
    SonicSessions::new(SonicLimits::default())
}

/// Rows are refused with the field at fault.
#[test]
fn faulty_rows() {
    let good = row("a,b|3", "1,32767", &[template(256, &[TIME, counter(1)])]);
    assert!(SonicSession::from_row(&good).is_ok());
    let fault = |change: &dyn Fn(&mut SessionRow)| {
        let mut row = good.clone();
        change(&mut row);
        sessions().apply("key", &row).expect_err("refused").to_string()
    };
    assert!(fault(&|row| row.stream_status = "on".into()).starts_with("stream_status is \"on\""));
    assert!(fault(&|row| row.session_type = "sflow".into()).starts_with("session_type is \"sflow\""));
    assert!(fault(&|row| row.object_names = "a".into()).starts_with("object_names has 1 names, object_ids has 2"));
    assert!(fault(&|row| row.object_ids = "0,1".into()).starts_with("object_ids has \"0\" at position 0"));
    assert!(fault(&|row| row.object_ids = "1,32768".into()).starts_with("object_ids has \"32768\" at position 1"));
    assert!(fault(&|row| row.object_ids = "1,one".into()).starts_with("object_ids has \"one\""));
    assert!(fault(&|row| row.object_ids = "4,4".into()).starts_with("object_ids has label 4 twice"));
    assert!(
        fault(&|row| row.session_config.truncate(20)).starts_with("session_config is no sequence of ipfix messages")
    );
    assert_eq!(fault(&|row| row.session_config.clear()), "session_config holds no template");
    let config = |sets: &[Vec<u8>]| fault(&|row| row.session_config = message(0, sets));
    assert!(config(&[set(3, &[])]).starts_with("session_config has set 3 at byte 16"));
    let templates = |fields: &[Field]| config(&[set(2, &template(256, fields))]);
    assert!(templates(&[TIME, (1, 9, Some(1))]).contains("field 1 of template 256 is a counter of 9 bytes"));
    assert!(templates(&[TIME, (1, 0, Some(1))]).contains("is a counter of 0 bytes"));
    assert!(templates(&[TIME, (0, 8, Some(1))]).contains("field 1 of template 256 has label 0"));
    assert!(templates(&[(325, 5, None), counter(1)]).contains("is a time of 5 bytes"));
    assert!(templates(&[TIME, (1, 65_535, Some(1))]).contains("has a variable length"));
    assert!(templates(&[TIME, (0, 8, Some(0))]).contains("has no counter"));
    assert!(config(&[set(2, &template(255, &[counter(1)]))]).contains("template id 255 is reserved"));
    assert!(config(&[set(2, &[1, 0, 0, 9, 0, 1])]).contains("template 256 with 9 fields does not fit"));
    let two = [template(256, &[counter(1)]), template(256, &[counter(2)])].concat();
    assert!(config(&[set(2, &two)]).contains("twice and differently"));
}

/// Times, place holders and foreign elements take bytes; counters keep their widths.
#[test]
fn layouts() {
    let fields =
        [(322, 4, None), (0, 3, Some(0)), (5, 1, Some(0x8001_8000)), (210, 2, None), (325, 4, None), counter(6)];
    let session = SonicSession::from_row(&row("", "", &[template(256, &fields)])).expect("a session");
    let template = &session.templates()[0];
    assert_eq!(template.record_length(), 22);
    assert_eq!(template.time(), RecordTime::Seconds { offset: 0, width: 4, nanos: Some(10) });
    let places: Vec<_> = template.counters().iter().map(|counter| (counter.offset, counter.width)).collect();
    assert_eq!(places, [(7, 1), (14, 8)]);
    assert_eq!(template.counters()[0].statistic.object_type, 0x2000_0001);
    assert_eq!(template.time().read(&[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]), Some(2_000_000_007));
    let late = RecordTime::UnixNano { offset: 0 }.read(&[0xff; 8]);
    assert_eq!(late, Some(i64::MAX), "held, not wrapped");
}

/// A template of as many counters as fit a message is taken, one more cannot be sent.
#[test]
fn largest_template() {
    let fields: Vec<Field> = std::iter::once(TIME).chain((0..8_188).map(|_| counter(1))).collect();
    let session = SonicSession::from_row(&row("a", "1", &[template(256, &fields)])).expect("a session");
    assert_eq!(session.templates()[0].counters().len(), MAX_COUNTERS);
    assert_eq!(session.templates()[0].record_length(), 8 * 8_189);
}

/// A changed configuration waits for data that only it explains; then the old templates are gone.
#[test]
fn pending_configuration() {
    let (old, new) = (template(256, &[TIME, counter(1)]), template(257, &[TIME, counter(1), counter(2)]));
    let mut sessions = sessions();
    assert_eq!(sessions.apply("key", &row("a", "1", std::slice::from_ref(&old))), Ok(Applied::Active));
    assert_eq!(sessions.apply("key", &row("a", "1", &[old])), Ok(Applied::Unchanged));
    assert_eq!(sessions.apply("key", &row("b,c", "1,2", std::slice::from_ref(&new))), Ok(Applied::Pending));
    assert_eq!(sessions.apply("key", &row("b,c", "1,2", &[new])), Ok(Applied::Unchanged));
    let (old, new) = (set(256, &record(7, &[1])), set(257, &record(8, &[1, 2])));
    let seen = admit(&mut sessions, 0, &message(0, &[old.clone(), new, old]));
    assert_eq!(seen, [(256, Some("a".into()), 1, None), (257, Some("b".into()), 1, None)]);
    assert_eq!(sessions.counters().unknown_template_sets, 1);
}

/// A configuration that only renames or redefines holds at once, and keeps what did not change.
#[test]
fn renamed_objects() {
    let templates = [template(256, &[TIME, counter(1)]), template(257, &[TIME, counter(2)])];
    let mut sessions = sessions();
    let _ = sessions.apply("key", &row("a,b", "1,2", &templates)).expect("applied");
    let payload = message(0, &[set(256, &record(7, &[1])), set(257, &record(7, &[1]))]);
    let mut kept = Vec::new();
    sessions.admit(0, &payload, 0, |set| kept.push(std::sync::Arc::clone(set.template))).expect("admitted");
    assert_eq!(sessions.apply("key", &row("a,c", "1,2", &templates)), Ok(Applied::Active));
    let mut now = Vec::new();
    sessions.admit(0, &payload, 0, |set| now.push(std::sync::Arc::clone(set.template))).expect("admitted");
    assert!(std::sync::Arc::ptr_eq(&kept[0], &now[0]));
    assert!(!std::sync::Arc::ptr_eq(&kept[1], &now[1]));
    assert_eq!(now[1].object_name(2), Some("c"));
}

/// Two sessions with one template: the same is shared, another definition of the later is refused and counted.
#[test]
fn conflicts() {
    let (one, other) = (template(256, &[TIME, counter(1)]), template(256, &[TIME, counter(2)]));
    let mut sessions = sessions();
    let _ = sessions.apply("first", &row("a", "1", std::slice::from_ref(&one))).expect("applied");
    assert_eq!(sessions.apply("second", &row("a", "1", std::slice::from_ref(&one))), Ok(Applied::Active));
    let refused = sessions.apply("third", &row("a", "1", &[other]));
    assert_eq!(refused, Err(SonicSessionError::Conflict { domain: 0, id: 256, other: "first".into() }));
    assert!(sessions.apply("fourth", &row("z", "1", &[one])).is_err(), "another name is another definition");
    assert_eq!((sessions.counters().sessions_refused, sessions.counters().sessions_in_conflict), (2, 2));
    let payload = message(0, &[set(256, &record(7, &[1]))]);
    assert!(sessions.remove("first"));
    assert_eq!(admit(&mut sessions, 0, &payload).len(), 1, "the second has it too");
    let disabled = SessionRow { stream_status: "disabled".into(), ..SessionRow::default() };
    assert_eq!(sessions.apply("second", &disabled), Ok(Applied::Retired));
    assert!(admit(&mut sessions, 0, &payload).is_empty());
    assert!(!sessions.remove("second"));
}

/// A template that a source sends holds for that source alone; names come from the session that has its key.
#[test]
fn learned_templates() {
    let mut sessions = sessions();
    let _ = sessions.apply("key", &row("a,b", "1,2", &[template(256, &[TIME, counter(1)])])).expect("applied");
    let own = set(2, &template(256, &[TIME, counter(2), counter(1)]));
    let data = set(256, &record(7, &[1, 2]));
    assert_eq!(admit(&mut sessions, 5, &message(0, &[own, data.clone()])), [(256, Some("b".into()), 1, None)]);
    let other_source = admit(&mut sessions, 6, &message(0, &[set(256, &record(7, &[1]))]));
    assert_eq!(other_source, [(256, Some("a".into()), 1, None)]);
    sessions.forget_source(5);
    let as_configured = admit(&mut sessions, 5, &message(0, &[data]));
    assert_eq!(as_configured, [(256, Some("a".into()), 1, None)], "the rest is padding");
    assert_eq!(sessions.counters().nonzero_padding_sets, 1);
    assert_eq!(sessions.counters().templates_learned, 1);
}

/// What was learned without names gives way when a session says the same with names.
#[test]
fn session_after_its_template() {
    let mut sessions = sessions();
    let definition = template(256, &[TIME, counter(1)]);
    let payload = message(0, &[set(2, &definition), set(256, &record(7, &[1]))]);
    assert_eq!(admit(&mut sessions, 5, &payload)[0].1, None);
    let _ = sessions.apply("key", &row("a", "1", &[definition])).expect("applied");
    assert_eq!(admit(&mut sessions, 5, &payload)[0].1.as_deref(), Some("a"));
    assert_eq!(sessions.counters().templates_learned, 1);
}

/// Learned templates are bounded, refused ones counted, withdrawn ones gone.
#[test]
fn bounds_of_learned_templates() {
    let mut sessions = SonicSessions::new(SonicLimits { max_learned_fields: 5, ..SonicLimits::default() });
    let learn = |sessions: &mut SonicSessions, template: &[u8]| admit(sessions, 0, &message(0, &[set(2, template)]));
    for id in 256..260 {
        assert!(learn(&mut sessions, &template(id, &[TIME, counter(1), counter(2)])).is_empty());
    }
    assert_eq!(sessions.counters().templates_evicted, 3);
    let data = |id| message(0, &[set(id, &record(7, &[1, 2]))]);
    assert!(admit(&mut sessions, 0, &data(256)).is_empty());
    assert_eq!(admit(&mut sessions, 0, &data(259)).len(), 1);
    assert!(learn(&mut sessions, &template(259, &[TIME])).is_empty());
    assert!(admit(&mut sessions, 0, &data(259)).is_empty(), "a bad definition makes the id unknown");
    assert!(learn(&mut sessions, &template(300, &[TIME, counter(1), counter(2)])).is_empty());
    assert!(learn(&mut sessions, &[1, 44, 0, 0]).is_empty());
    assert!(admit(&mut sessions, 0, &data(300)).is_empty(), "withdrawn");
    let counters = sessions.counters();
    assert_eq!((counters.templates_refused, counters.templates_withdrawn), (1, 1));
    assert_eq!(sessions.last_refused_template(), Some(SonicTemplateError::NoCounters { id: 259 }));
    assert_eq!(sessions.last_unknown_template(), Some((0, 300)));
}

/// Records without a time take that of their message, then the last one of their source, then the time of receipt.
#[test]
fn times_of_records() {
    let mut sessions = sessions();
    let templates = [template(256, &[TIME, counter(1)]), template(257, &[counter(1)])];
    let _ = sessions.apply("key", &row("a", "1", &templates)).expect("applied");
    let (timed, bare) = (|time| set(256, &record(time, &[1])), set(257, &1_u64.to_be_bytes()));
    let times = |sessions: &mut SonicSessions, source, payload: &[u8]| {
        let seen = admit(sessions, source, payload);
        seen.into_iter().filter(|(id, ..)| *id == 257).map(|(.., time)| time).collect::<Vec<_>>()
    };
    let of_bare =
        |sessions: &mut SonicSessions, source| times(sessions, source, &message(0, std::slice::from_ref(&bare)));
    assert_eq!(of_bare(&mut sessions, 1), [Some(99)], "received");
    let around = message(0, &[bare.clone(), timed(5), bare.clone(), timed(6), bare.clone()]);
    assert_eq!(times(&mut sessions, 1, &around), [Some(5), Some(5), Some(6)]);
    let next =
        [message(0, std::slice::from_ref(&bare)), message(0, &[timed(9)]), message(0, std::slice::from_ref(&bare))]
            .concat();
    assert_eq!(times(&mut sessions, 1, &next), [Some(6), Some(9)]);
    assert_eq!(of_bare(&mut sessions, 2), [Some(99)], "another source");
    assert_eq!(of_bare(&mut sessions, 1), [Some(9)]);
    assert_eq!(sessions.counters().records_without_time, 8);
}

/// A payload over a limit is dropped whole.
#[test]
fn limits_of_payloads() {
    let limits = SonicLimits { max_payload_bytes: 64, max_sets: 2, ..SonicLimits::default() };
    let mut sessions = SonicSessions::new(limits);
    let _ = sessions.apply("key", &row("a", "1", &[template(256, &[counter(1)])])).expect("applied");
    let data = set(256, &[0; 8]);
    assert_eq!(admit(&mut sessions, 0, &message(0, &[data.clone(), data.clone()])).len(), 2);
    let sink = |_: SonicRecords<'_>| panic!("nothing is given out");
    let three = sessions.admit(0, &message(0, &[data.clone(), data.clone(), data]), 0, sink);
    assert_eq!(three, Err(SonicRejection::TooManySets { limit: 2 }));
    let long = sessions.admit(0, &message(0, &[set(256, &[0; 48])]), 0, sink);
    assert_eq!(long, Err(SonicRejection::TooLong { length: 68, limit: 64 }));
    assert_eq!(sessions.counters().rejected_limit, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Any bytes as a configuration or as a template set: an answer, no panic, and never more fields than bytes.
    #[test]
    fn any_configuration(mut content in proptest::collection::vec(any::<u8>(), 0..200), id in 256_u16..300, fields in 0_u8..30) {
        if content.len() >= 4 {
            content[..4].copy_from_slice(&[id.to_be_bytes()[0], id.to_be_bytes()[1], 0, fields]);
        }
        let mut row = row("a,b", "1,2", &[]);
        row.session_config = message(0, &[set(2, &content)]);
        if let Ok(session) = SonicSession::from_row(&row) {
            let counters: usize = session.templates().iter().map(|template| template.counters().len()).sum();
            prop_assert!((1..=content.len() / 8).contains(&counters));
        }
        let mut sessions = sessions();
        let _ = admit(&mut sessions, 0, &row.session_config);
        let counters = sessions.counters();
        prop_assert!(counters.templates_learned + counters.templates_refused <= content.len() as u64 / 4 + 1);
    }

    /// Payloads are dropped exactly when their framing is bad, and what is given out is what the counters say.
    #[test]
    fn framing_decides(
        lengths in proptest::collection::vec(proptest::collection::vec((0_u16..4, 0_usize..40), 0..4), 0..4),
        damage in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let messages = lengths.iter().map(|sets| {
            let sets: Vec<_> = sets.iter().map(|(id, length)| set(255 + id, &vec![1; *length])).collect();
            message(0, &sets)
        });
        let mut payload = messages.collect::<Vec<_>>().concat();
        if let Some((place, value)) = damage && !payload.is_empty() {
            let place = place.index(payload.len());
            payload[place] = value;
        }
        if let Some(cut) = cut && !payload.is_empty() {
            payload.truncate(cut.index(payload.len()));
        }
        let mut sessions = sessions();
        let templates = [template(256, &[TIME, counter(1)]), template(257, &[(9, 3, Some(1))])];
        let _ = sessions.apply("key", &row("a", "1", &templates)).expect("applied");
        let (mut records, mut counters) = (0, 0);
        let admitted = sessions.admit(0, &payload, 0, |set| {
            records += set.records as u64;
            counters += (set.records * set.template.counters().len()) as u64;
        });
        prop_assert_eq!(admitted.is_ok(), check_framing(&payload).is_ok());
        prop_assert_eq!((sessions.counters().records, sessions.counters().counters), (records, counters));
        prop_assert_eq!(sessions.counters().rejected_framing, u64::from(admitted.is_err()));
        if admitted.is_err() {
            prop_assert_eq!(records, 0);
        }
    }
}
