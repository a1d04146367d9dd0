//! The look at a header finds what the parser finds, in the lines of real devices and daemons.

use catchment_sampling::{Facts, SyslogMessage};
use catchment_syslog::{Receipt, Zone, parse};
use serde_json::Value;

/// Severity, host and program of all datagrams that the parser is tested with; of CEF without a program, the device.
#[test]
fn agrees_with_the_parser() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../syslog/tests/data/cases.ndjson");
    let text = |name: Option<&[u8]>| name.map(|name| String::from_utf8_lossy(name).into_owned());
    let plain = |name: String| name.replace("\\|", "|").replace("\\\\", "\\");
    let mut compared = 0;
    for line in std::fs::read_to_string(cases).expect("cases").lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let Some(input) = case["input"].as_str().filter(|_| case["framing"] == "datagram") else { continue };
        let parsed = parse(input.as_bytes(), &Receipt { time_unix_nano: 0, zone: &Zone::Utc });
        let device = parsed.cef.map(|cef| [cef.device_vendor(), cef.device_product()].join(&b'|'));
        let message = SyslogMessage { message: input.as_bytes(), source: None };
        let names = message.names();
        assert_eq!(text(names.host), text(parsed.hostname), "{case}");
        assert_eq!(text(names.app).map(plain), text(parsed.app_name.or(device.as_deref())), "{case}");
        assert_eq!(message.severity(), parsed.severity, "{case}");
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}
