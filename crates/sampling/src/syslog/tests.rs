use catchment_syslog::{Receipt, Zone};
use proptest::prelude::*;

use super::*;

fn names(line: &str) -> (Option<&str>, Option<&str>) {
    let text = |name: Option<&'static [u8]>| name.map(|name| std::str::from_utf8(name).expect("text"));
    let leaked: &'static [u8] = line.as_bytes().to_vec().leak();
    let names = header::names(leaked);
    (text(names.host), text(names.app))
}

/// Headers of all formats, with what the parser finds in them.
const LINES: &[&str] = &[
    "<34>Nov 30 10:00:00 web01 sshd[4321]: session opened",
    "<34>Nov  3 10:00:00 web01 su: 'su root' failed",
    "<34> Nov 30 10:00:00 web01 cron: x",
    "<34>Nov 30 10:00:00 192.0.2.7 kernel: [1.2] up",
    "<34>Nov 30 10:00:00 2001:db8::7 app: text",
    "<34>Nov 30 2026 10:00:00 fw01 app: text",
    "<34>Nov 30 10:00:00 2026 fw01 app: text",
    "<34>Nov 30 10:00:00.123 web01 app: text",
    "<34>2026-11-30T10:00:00.123456+01:00 web01 app[1]: text",
    "<34>2026-11-30 10:00:00 web01 app[1]: text",
    "<34>Nov 30 10:00:00 sshd[4321]: no host here",
    "<34>Nov 30 10:00:00 web01 no tag in this text",
    "<34>Nov 30 10:00:00 - -: nothing",
    "<34>Nov 9 18:11:57 gw-2 dhcpd[77]: day without padding",
    "<34>2026 Nov 30 10:00:00 web01 app: year first",
    "<34>Nov 30 10:00:00 UTC rtr3 ospfd: zone",
    "<34>Nov 30 10:00:00 CEST rtr3 ospfd: zone",
    "<34>Nov 30 10:00:00 WEB ospfd: no zone",
    "<34>Nov 30 10:00:00.123 UTC: rtr3 ospfd: zone and colon",
    "<34>Nov 30 10:00:00 2001:db8::7: x",
    "<34>Nov 30 10:00:00 192.0.2.7: x",
    "<34>Nov 30 10:00:00 http://192.0.2.1/x is down",
    "<34>Nov 30 10:00:00 h 12:34:56 is no tag",
    "<34>Nov 30 10:00:00 h a:b",
    "<34>Nov 30 10:00:00 h a[b c]: x",
    "<34>Nov 30 10:00:00 h a[b c] x",
    "<34>Nov 30 10:00:00 h a[] x",
    "<34>Nov 30 10:00:00 h LEEF:1.0|x",
    "<34>Nov 30 10:00:00 h CEF:2|x",
    // Counters are not names: they would make another key of each message.
    "<189>237: *Mar  1 18:46:11: %SYS-5-CONFIG_I: Configured from console by vty2",
    "<189>237: 000241: Nov 30 10:00:00.123 UTC: %LINK-3-UPDOWN: Interface Gi0/1 up",
    "<189>29: .Nov 30 10:00:00.5: %X-5-Y: z",
    "<189>29: sw1: Nov 30 10:00:00 GMT: %X-5-Y: z",
    "<189>29: sw1: *Nov 30 2026 10:00:00.5 UTC: %X-5-Y: z",
    "<189>sw1: Nov 30 10:00:00: %X-5-Y: z",
    "<189>44: 2001:db8::7: Nov 30 10:00:00: %X-5-Y: z",
    "<187>22: 13w1d: %LINK-3-UPDOWN: x",
    "<187>22: 00:00:46: %A-1-B: c",
    "<187>7: %SYS-5-RESTART: x",
    "<189>: Nov 30 10:00:00: %SYS-5-X: y",
    "<189>:Nov 30 10:00:00 UTC: %ASA-6-X: y",
    "<189>7: RP/0/RSP0/CPU0:Nov 30 10:00:00.123 UTC: config[65710]: %MGBL-CONFIG-6-DB_COMMIT : x",
    "<189>2026 Nov 30 10:00:00.123 n7k %VSHD-5-X: y",
    "<34>app: no header",
    "<34>web01 app: no stamp",
    "<34>web01 app[7]: no stamp",
    "<34>just words here",
    "<34>http://192.0.2.1/x is down",
    "<34>10:00:00 up",
    "no pri, but a tag: x",
    "app: x",
    "<34>1 2026-11-30T10:00:00.123Z web01 app 4321 ID47 - text",
    "<34>1 2026-11-30T10:00:00Z web01 app 4321 ID47 [a@1 b=\"c\"] text",
    "<34>1 - web01 - - - - text",
    "<34>1 - - app - - - text",
    "<34>1 - - - - - -",
    "<34>1 - web01 app",
    "<34>1 - web01",
    "<34>12 2026-11-30T10:00:00Z web01 app - - -",
    "<34>0 2026-11-30T10:00:00Z web01 app - - -",
    "<34>1 2026-11-30T10:00:00Z  app - - -",
    "<192>Nov 30 10:00:00 web01 app: bad pri",
    "<034>Nov 30 10:00:00 web01 app: bad pri",
    "<",
    "",
];

/// Host and program are those that the parser finds.
#[test]
fn agrees_with_the_parser() {
    for line in LINES {
        let parsed = catchment_syslog::parse(line.as_bytes(), &Receipt { time_unix_nano: 0, zone: &Zone::Utc });
        let text = |field: Option<&[u8]>| field.map(|field| String::from_utf8_lossy(field).into_owned());
        let (host, app) = names(line);
        assert_eq!(host.map(str::to_owned), text(parsed.hostname), "host of {line}");
        assert_eq!(app.map(str::to_owned), text(parsed.app_name), "program of {line}");
        let severity = SyslogMessage { message: line.as_bytes(), source: None }.severity();
        assert_eq!(severity, parsed.severity, "severity of {line}");
    }
}

/// CEF names a device where nothing else names a program.
#[test]
fn cef() {
    let event = "CEF:0|Nor\\|wall|NX-OSF|11.2.4|SSH|probe|5|act=drop";
    let device = Some("Nor\\|wall|NX-OSF");
    for (before, host, app) in [
        ("", None, device),
        ("<14>", None, device),
        ("<14>Nov 30 10:00:00 fw01 ", Some("fw01"), device),
        ("<14>fw01 ", Some("fw01"), device),
        ("<14>Nov 30 10:00:00 fw01 agent: ", Some("fw01"), Some("agent")),
        ("<14>Nov 30 10:00:00 ", None, device),
        ("<14>1 2026-11-30T10:00:00Z fw01 ", Some("fw01"), device),
        ("<14>1 2026-11-30T10:00:00Z fw01 - - - - ", Some("fw01"), device),
        ("<14>1 2026-11-30T10:00:00Z fw01 agent - - - ", Some("fw01"), Some("agent")),
        ("<14>1 2026-11-30T10:00:00Z fw01 - - - [a b=\"c\"] ", Some("fw01"), device),
    ] {
        assert_eq!(names(&format!("{before}{event}")), (host, app), "{before}");
    }
    for broken in ["CEF:0", "CEF:0|", "CEF:0|v", "CEF:0|v\\|p", "CEF:0|v|p\\", "CEF:"] {
        assert_eq!(names(&format!("<14>Nov 30 10:00:00 fw01 {broken}")), (Some("fw01"), None), "{broken}");
    }
}

/// However long a message is, only its beginning is looked at.
#[test]
fn bounded_look() {
    let far = format!("<14>1 - {} app - - -", "h".repeat(HEADER_LOOK));
    assert_eq!(names(&far).1, None);
    let endless = vec![b'<'; 1 << 20];
    assert_eq!(header::names(&endless), Names::default());
}

proptest! {
    /// Any bytes give an answer, whose parts are parts of the message.
    #[test]
    fn any_bytes(
        start in "(<[0-9]{1,3}>)?(1 (-|2026-11-30T10:00:00Z) |Nov 30 10:00:00 |2026-11-30 |CEF:0\\|)?",
        rest in prop::collection::vec(any::<u8>(), 0..200),
        words in "[-a-z:\\[\\]|\\\\ 0-9=\"]{0,80}",
    ) {
        for text in [[start.as_bytes(), &rest].concat(), [start.as_bytes(), words.as_bytes()].concat()] {
            let message = SyslogMessage { message: &text, source: None };
            let names = message.names();
            for name in [names.host, names.app].into_iter().flatten() {
                prop_assert!(!name.is_empty());
                prop_assert!(text.windows(name.len()).any(|window| window == name));
            }
            prop_assert!(message.severity().is_none_or(|severity| severity < 8));
            let _trace = (message.trace_parent(), message.trace());
        }
    }
}
