use catchment_syslog::trace::TraceContext;
use catchment_syslog::{Receipt, Zone};
use proptest::prelude::*;

use super::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
/// The low 56 bits of the trace id.
const LOW: u64 = 0xce_929d_0e0e_4736;

fn found(text: &str) -> Option<bool> {
    let parent = TraceParent::find(text.as_bytes());
    assert!(parent.is_none_or(|parent| parent.randomness.get() == LOW), "{text}: {parent:?}");
    assert_eq!(find(text.as_bytes()), parent.map(|parent| (parent, TraceState::default())));
    parent.map(|parent| parent.sampled)
}

/// Versions, lengths, flags, and what makes a value invalid, behind a name.
#[test]
fn values() {
    let zeros = "0".repeat(32);
    for (value, sampled) in [
        (format!("00-{TRACE}-{SPAN}-01"), Some(true)),
        (format!("00-{TRACE}-{SPAN}-00"), Some(false)),
        (format!("00-{TRACE}-{SPAN}-02"), Some(false)),
        (format!("00-{TRACE}-{SPAN}-ff"), Some(true)),
        (format!("00-{TRACE}-{SPAN}-01 "), Some(true)),
        (format!("00-{TRACE}-{SPAN}-01,"), Some(true)),
        (format!("cc-{TRACE}-{SPAN}-05-what-the-future-brings"), Some(true)),
        (format!("cc-{TRACE}-{SPAN}-05.what"), None),
        (format!("cc-{TRACE}-{SPAN}-051"), None),
        (format!("ff-{TRACE}-{SPAN}-01"), None),
        (format!("fF-{TRACE}-{SPAN}-01"), None),
        (format!("00-{TRACE}-{SPAN}-01-x"), None),
        (format!("00-{TRACE}-{SPAN}-011"), None),
        (format!("00-{TRACE}-{SPAN}-01.5"), None),
        (format!("00-{TRACE}-{SPAN}-1"), None),
        (format!("00-{TRACE}-{SPAN}"), None),
        (format!("0-{TRACE}-{SPAN}-01"), None),
        (format!("00_{TRACE}-{SPAN}-01"), None),
        (format!("00-{TRACE}_{SPAN}-01"), None),
        (format!("00-{TRACE}-{SPAN}_01"), None),
        (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None),
        (format!("00-{TRACE}-{}-01", SPAN.to_uppercase()), None),
        (format!("00-{TRACE}-{SPAN}-0A"), None),
        (format!("00-{TRACE}-{SPAN}-0x"), None),
        (format!("0g-{TRACE}-{SPAN}-01"), None),
        (format!("00-{zeros}-{SPAN}-01"), None),
        (format!("00-{TRACE}-{}-01", &zeros[..16]), None),
        (format!("00-{}-{SPAN}-01", &TRACE[1..]), None),
        (format!("00-{TRACE}0-{SPAN}-01"), None),
        (String::new(), None),
    ] {
        assert_eq!(found(&format!("traceparent={value}")), sampled, "{value}");
        assert_eq!(found(&format!(r#"<14>1 - h a - - [t@1 traceparent="{value}"] m"#)), sampled, "{value}");
    }
}

/// The trace of a message with both.
fn trace(text: &str) -> Option<Trace> {
    find(text.as_bytes()).map(|(parent, state)| Trace::new(parent, state))
}

/// How the name and its value are written.
#[test]
fn places() {
    let value = format!("00-{TRACE}-{SPAN}-01");
    for (text, is_there) in [
        (format!("traceparent={value}"), true),
        (format!("<14>Nov 30 10:00:00 h a: traceparent={value}"), true),
        (format!("<14>Nov 30 10:00:00 h a: traceparent: {value}, done"), true),
        (format!("CEF:0|v|p|1|2|n|3|src=192.0.2.1 traceparent={value} act=drop"), true),
        (format!(r#"{{"msg":"x","traceparent":"{value}"}}"#), true),
        (format!(r#"{{"traceparent" : "{value}","msg":"x"}}"#), true),
        (format!(r#""{{\"traceparent\":\"{value}\"}}""#), true),
        (format!("{{'traceparent': '{value}'}}"), true),
        (format!("labels.traceparent={value}"), true),
        (format!("traceparent {value}"), false),
        (format!("traceparent=={value}"), false),
        (format!("traceparent{value}"), false),
        (format!("traceparents={value}"), false),
        (format!("xtraceparent={value}"), false),
        (format!("my_traceparent={value}"), false),
        (format!("Traceparent={value}"), false),
        (value.clone(), false),
        ("traceparent=".to_owned(), false),
        ("traceparent".to_owned(), false),
        ("trace".to_owned(), false),
    ] {
        assert_eq!(found(&text), is_there.then_some(true), "{text}");
    }
}

/// The first valid one counts, wherever it is, up to the end of the look.
#[test]
fn several_and_far() {
    let [kept, dropped] = ["01", "00"].map(|flags| format!("00-{TRACE}-{SPAN}-{flags}"));
    assert_eq!(found(&format!("traceparent=x traceparent={kept} traceparent={dropped}")), Some(true));
    assert_eq!(found(&format!("traceparent={dropped} traceparent={kept}")), Some(false));
    assert_eq!(found(&format!("trace traceback tracetraceparent={kept} traceparent={dropped}")), Some(false));
    // The name must begin in the look with five bytes at least; the value may end behind it.
    for (before, is_there) in [(0, true), (TRACE_LOOK - 5, true), (TRACE_LOOK - 4, false), (TRACE_LOOK, false)] {
        let text = format!("{}traceparent={kept}", " ".repeat(before));
        assert_eq!(found(&text).is_some(), is_there, "{before}");
    }
}

/// Members of tracestate, and what is read of `ot`.
#[test]
fn states() {
    let parent = format!("00-{TRACE}-{SPAN}-01");
    for (state, threshold, randomness) in [
        (r#"tracestate="ot=th:c""#, Some("c"), LOW),
        (r#"tracestate="a=1, ot=th:c8;rv:f0000000000001 ,b=2""#, Some("c8"), 0xf0_0000_0000_0001),
        (r#"tracestate="ot=rv:f0000000000001;x:y;th:0""#, Some("0"), 0xf0_0000_0000_0001),
        ("tracestate=ot=th:c;rv:cfffffffffffff,b=2 act=drop", Some("c"), 0xcf_ffff_ffff_ffff),
        (r"tracestate=ot\=th:c act=drop", Some("c"), LOW),
        (r#""tracestate":"ot=th:c""#, Some("c"), LOW),
        (r#"\"tracestate\":\"ot=th:c\",\"x\":1"#, Some("c"), LOW),
        // Not valid, or not of OpenTelemetry.
        (r#"tracestate="ot=th:C;rv:f000000000000""#, None, LOW),
        (r#"tracestate="ot=th:123456789012345""#, None, LOW),
        (r#"tracestate="ot=th:""#, None, LOW),
        (r#"tracestate="xot=th:c""#, None, LOW),
        (r#"tracestate="t@ot=th:c""#, None, LOW),
        (r#"tracestate="a=ot=th:c""#, None, LOW),
        ("tracestate=", None, LOW),
        // The first `ot` counts.
        (r#"tracestate="ot=x:1,ot=th:c""#, None, LOW),
        // A trace that should not have been sampled by its threshold: the threshold says nothing.
        (r#"tracestate="ot=th:d""#, None, LOW),
        (r#"tracestate="ot=th:8;rv:7fffffffffffff""#, None, 0x7f_ffff_ffff_ffff),
    ] {
        for text in [format!("traceparent={parent} {state}"), format!("{state} traceparent={parent}")] {
            let trace = trace(&text).expect("a trace");
            assert_eq!(trace.threshold.map(|threshold| threshold.to_string()).as_deref(), threshold, "{text}");
            assert_eq!(trace.randomness.get(), randomness, "{text}");
        }
        assert_eq!(TraceParent::find(state.as_bytes()), None, "{state}");
    }
    // The threshold of a trace that is not sampled says nothing.
    let unsampled = format!("traceparent=00-{TRACE}-{SPAN}-00 tracestate=ot=th:c");
    assert_eq!(trace(&unsampled).and_then(|trace| trace.threshold), None);
    assert_eq!(TraceState::from_header(b"ot=th:c").threshold, Threshold::from_hex(b"c"));
    assert!(TraceParent::from_header(parent.as_bytes()).is_some());
    assert_eq!(TraceParent::from_header(format!("{parent} ").as_bytes()), None);
}

/// A member that is cut by the look is not taken for a shorter one.
#[test]
fn long_states() {
    for filling in 0..40 {
        let state = format!("{}=1,ot=th:c8{}", "a".repeat(STATE_LOOK - filling), "0".repeat(12));
        let text = format!("traceparent=00-{TRACE}-{SPAN}-01 tracestate={state}");
        let threshold = trace(&text).and_then(|trace| trace.threshold);
        assert!(threshold.is_none_or(|threshold| threshold.to_string() == "c8"), "{filling}: {threshold:?}");
        assert_eq!(threshold.is_some(), state.len() <= STATE_LOOK, "{filling}");
    }
}

/// Text that is all but a trace over and over is looked at once, and no further than the look goes.
#[test]
fn hostile_text() {
    for piece in ["trace", "traceparent=", "traceparent=00-", "tracestate=ot=", "traceparent=\"tracestate=\""] {
        let text = piece.repeat(1 << 14);
        assert_eq!(find(text.as_bytes()), None, "{piece}");
        let late = format!("{}traceparent=00-{TRACE}-{SPAN}-01", &text[..TRACE_LOOK]);
        assert_eq!(find(late.as_bytes()), None, "{piece}");
    }
}

proptest! {
    /// A value is valid if the parser of messages finds it to be.
    #[test]
    fn agrees_with_the_parser(
        value in "(00|01|ff|0G|cc)[-_](4bf92f3577b34da6a3ce929d0e0e4736|0{32}|[0-9a-g]{31,33})-(00f067aa0ba902b7|0{16}|[0-9a-fA]{16})-[0-3]?[0-9a-f][-x.]?"
    ) {
        let expected = TraceContext::from_traceparent(value.as_bytes());
        let line = format!("<14>1 - - - - - [t@1 traceparent=\"{value}\"] m");
        let parsed = catchment_syslog::parse(line.as_bytes(), &Receipt { time_unix_nano: 0, zone: &Zone::Utc });
        prop_assert_eq!(parsed.trace_context(), expected);
        let found = TraceParent::find(line.as_bytes());
        prop_assert_eq!(found.map(|trace| trace.sampled), expected.map(|context| context.flags & 1 == 1));
        prop_assert_eq!(TraceParent::from_header(value.as_bytes()).is_some(), expected.is_some());
        let low = expected.and_then(|context| context.trace_id.last_chunk().copied().map(u64::from_be_bytes));
        prop_assert_eq!(found.map(|trace| trace.randomness), low.map(Randomness::from_low_bits));
    }

    /// Any bytes give an answer, also those that look much like a trace.
    #[test]
    fn any_bytes(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..20),
                "(trace|traceparent|tracestate|=|:|\"|\\\\|00-|ot=|th:|rv:|[0-9a-f]{16}|-01|;|,| )".prop_map(String::into_bytes),
            ],
            0..60,
        )
    ) {
        let text = pieces.concat();
        prop_assert_eq!(TraceParent::find(&text), find(&text).map(|(parent, _)| parent));
        let _headers = (TraceParent::from_header(&text), TraceState::from_header(&text));
    }
}
