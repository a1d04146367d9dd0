use super::*;
use crate::{Receipt, Zone, parse};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn context(flags: u8) -> TraceContext {
    let trace_id = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
    TraceContext { trace_id, span_id: 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes(), flags }
}

/// Versions, lengths, flags, and what makes a value invalid.
#[test]
fn traceparent() {
    let upper = TRACE.to_uppercase();
    let zeros = "0".repeat(32);
    for (text, flags) in [
        (format!("00-{TRACE}-{SPAN}-01"), Some(1)),
        (format!("00-{TRACE}-{SPAN}-00"), Some(0)),
        (format!("00-{TRACE}-{SPAN}-ff"), Some(0xff)),
        // Later versions: the leading fields, and the flags known today.
        (format!("01-{TRACE}-{SPAN}-ff"), Some(3)),
        (format!("cc-{TRACE}-{SPAN}-05-what-the-future-brings"), Some(1)),
        (format!("01-{TRACE}-{SPAN}-01-"), Some(1)),
        (format!("01-{TRACE}-{SPAN}-01.x"), None),
        (format!("01-{TRACE}-{SPAN}-011"), None),
        (format!("ff-{TRACE}-{SPAN}-01"), None),
        // Version 00 ends with its flags.
        (format!("00-{TRACE}-{SPAN}-01-x"), None),
        (format!("00-{TRACE}-{SPAN}-01 "), None),
        (format!(" 00-{TRACE}-{SPAN}-01"), None),
        (format!("00-{TRACE}-{SPAN}-1"), None),
        (format!("00-{TRACE}-{SPAN}"), None),
        (format!("0-{TRACE}-{SPAN}-01-"), None),
        (format!("00_{TRACE}-{SPAN}-01"), None),
        (format!("00-{TRACE}_{SPAN}-01"), None),
        (format!("00-{TRACE}-{SPAN}_01"), None),
        (format!("00-{upper}-{SPAN}-01"), None),
        (format!("00-{TRACE}-{SPAN}-0A"), None),
        (format!("0g-{TRACE}-{SPAN}-01"), None),
        (format!("00-{TRACE}-{SPAN}-0x"), None),
        (format!("00-{zeros}-{SPAN}-01"), None),
        (format!("00-{TRACE}-{}-01", &zeros[..16]), None),
        (String::new(), None),
    ] {
        assert_eq!(TraceContext::from_traceparent(text.as_bytes()), flags.map(context), "{text}");
    }
}

/// Where a message may carry it, and which one counts.
#[test]
fn in_messages() {
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let other = "00-11111111111111111111111111111111-2222222222222222-00";
    let upper = TRACE.to_uppercase();
    for (line, flags) in [
        (format!(r#"<14>1 - - - - - [t@1 traceparent="{parent}"] m"#), Some(1)),
        (format!(r#"<14>1 - - - - - [a@1 k="v"][t@1 x="y" TraceParent="{parent}" z="\""]"#), Some(1)),
        (format!(r#"<14>1 - - - - - [t@1 trace_id="{TRACE}" span_id="{SPAN}"] m"#), Some(0)),
        (format!(r#"<14>1 - - - - - [t@1 trace_flags="03" SPAN_ID="{SPAN}" Trace_Id="{upper}"] m"#), Some(3)),
        (format!(r#"<14>1 - - - - - [t@1 trace_id="{TRACE}" span_id="{SPAN}" trace_flags="x"] m"#), Some(0)),
        // The first that is valid; a traceparent goes before ids.
        (format!(r#"<14>1 - - - - - [t@1 traceparent="x" traceparent="{parent}" traceparent="{other}"] m"#), Some(1)),
        (
            format!(r#"<14>1 - - - - - [a trace_id="{}" span_id="{SPAN}"][b traceparent="{parent}"] m"#, &other[3..35]),
            Some(1),
        ),
        // Ids of different elements do not belong together.
        (format!(r#"<14>1 - - - - - [a trace_id="{TRACE}"][b span_id="{SPAN}"] m"#), None),
        (format!(r#"<14>1 - - - - - [t@1 trace_id="{}" span_id="{SPAN}"] m"#, &TRACE[1..]), None),
        (format!(r#"<14>1 - - - - - [t@1 trace_id="{TRACE}" span_id="{}"] m"#, "0".repeat(16)), None),
        (format!(r#"<14>1 - - - - - [traceparent k="{parent}"] m"#), None),
        (format!("<14>1 - - - - - - traceparent={parent}"), None),
        (format!("<14>Nov 30 10:00:00 h a: traceparent={parent}"), None),
        (format!("CEF:0|v|p|1|2|n|3|src=192.0.2.1 traceparent={parent} act=drop"), Some(1)),
        (format!("<14>Nov 30 10:00:00 h CEF:0|v|p|1|2|n|3|traceparent={parent}"), Some(1)),
        (format!(r#"<14>1 - - - - - [a k="v"] CEF:0|v|p|1|2|n|3|traceparent={parent}"#), Some(1)),
        (format!("CEF:0|v|p|1|2|n|3|span_id={SPAN} trace_id={TRACE}  trace_flags=01 "), Some(1)),
        (format!("CEF:0|v|p|1|2|n|3|trace_id={TRACE}"), None),
        (format!("CEF:0|v|p|1|2|n|3|Traceparent={parent}"), None),
        (format!("CEF:0|v|p|1|2|traceparent={parent}|3|msg=trace"), None),
    ] {
        let record = parse(line.as_bytes(), &Receipt { time_unix_nano: 0, zone: &Zone::Utc });
        assert_eq!(record.trace_context(), flags.map(context), "{line}");
    }
}
