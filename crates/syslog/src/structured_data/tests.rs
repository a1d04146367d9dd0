use proptest::prelude::*;

use super::*;

type Param = (String, Vec<u8>);
type Read = Vec<(String, Vec<Param>)>;

fn read(text: &[u8]) -> Option<(Read, &[u8])> {
    let (data, rest) = StructuredData::split(text)?;
    let name = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let elements = data.elements().map(|element| {
        let params = element.params().map(|(key, value)| (name(key), value.into_owned()));
        (name(element.id()), params.collect())
    });
    Some((elements.collect(), rest))
}

/// Elements, parameters and what follows.
#[test]
fn well_formed() {
    let element = |id: &str, params: &[(&str, &str)]| {
        let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        (id.to_owned(), params.collect())
    };
    let cases: [(&str, Read, &str); 8] = [
        ("[a@1]", vec![element("a@1", &[])], ""),
        ("[a@1] [b] x", vec![element("a@1", &[])], " [b] x"),
        ("[a k=\"v\"][b] x", vec![element("a", &[("k", "v")]), element("b", &[])], " x"),
        ("[a k=\"\" k=\"2\"]", vec![element("a", &[("k", ""), ("k", "2")])], ""),
        (
            r#"[a p="C:\\x" q="\"\]" r="\n\"]"]"#,
            vec![element("a", &[("p", r"C:\x"), ("q", "\"]"), ("r", "\\n\"]")])],
            "",
        ),
        (r#"[a d="D:\\" e="1"] m"#, vec![element("a", &[("d", r"D:\"), ("e", "1")])], " m"),
        ("[a k=\"x[0] = y\"]", vec![element("a", &[("k", "x[0] = y")])], ""),
        ("[a  k=\"v\" ] m", vec![element("a", &[("k", "v")])], " m"),
    ];
    for (text, wanted, rest) in cases {
        assert_eq!(read(text.as_bytes()), Some((wanted, rest.as_bytes())), "{text}");
    }
}

/// Text that is not structured data from the first `[` on.
#[test]
fn malformed() {
    for text in [
        "",
        "-",
        "x",
        "[",
        "[]",
        "[ a]",
        "[a",
        "[a ",
        "[a k]",
        "[a k=]",
        "[a k=v]",
        "[a k=\"v]",
        "[a k=\"v\\\"]",
        "[a =\"v\"]",
        "[a k=\"v\"x]",
        "[a k=\"v\"j=\"w\"]",
        "[a]x",
        "[a][b",
        "[a=b]",
        "[a\"b]",
        "[a\x7f]",
        "[\u{e4}]",
        "[a k=\"v\"] [",
        "[a k =\"v\"]",
    ] {
        let is_data = read(text.as_bytes()).is_some();
        // The one with a space after `]` is well formed: the rest is MSG.
        assert_eq!(is_data, text == "[a k=\"v\"] [", "{text}");
    }
}

/// The raw text is exactly the elements, and a value borrows unless it has an escape.
#[test]
fn borrows() {
    let (data, _) = StructuredData::split(br#"[a k="v" e="\]"] m"#).unwrap();
    assert_eq!(data.raw(), br#"[a k="v" e="\]"]"#);
    let values: Vec<_> = data.elements().next().unwrap().params().map(|(_, value)| value).collect();
    assert!(matches!(values[..], [Cow::Borrowed(b"v"), Cow::Owned(_)]));
}

/// Elements beyond those whose ends are kept, and behind one of more than 64 KiB, are found as well.
#[test]
fn many_and_long_elements() {
    let long = "x".repeat(70_000);
    for escape in ["", "\\\""] {
        let mut text = String::new();
        for number in 0..12 {
            let value = if number == 2 { &long } else { "v" };
            text += &format!("[e{number} a=\"{value}{escape}\"  b=\"]{number}\" ]");
        }
        let (elements, rest) = read(text.as_bytes()).unwrap();
        assert!(rest.is_empty());
        assert_eq!(elements.len(), 12);
        for (number, (id, params)) in elements.iter().enumerate() {
            assert_eq!(*id, format!("e{number}"));
            assert_eq!(params[0].1.len(), escape.len() / 2 + if number == 2 { long.len() } else { 1 });
            assert_eq!(params[1], ("b".to_owned(), format!("]{number}").into_bytes()));
        }
    }
}

fn escape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for &byte in value {
        if matches!(byte, b'"' | b'\\' | b']') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

proptest! {
    /// What is written by the grammar comes back.
    #[test]
    fn comes_back(
        sent in prop::collection::vec(
            ("[!#-<>-Z^-~]{1,8}", prop::collection::vec(
                ("[!#-<>-Z^-~]{1,8}", prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\\'), Just(b'"')], 0..12)),
                0..4,
            )),
            1..4,
        ),
    ) {
        let mut text = Vec::new();
        for (id, params) in &sent {
            text.push(b'[');
            text.extend_from_slice(id.as_bytes());
            for (name, value) in params {
                text.extend_from_slice(format!(" {name}=\"").as_bytes());
                text.extend_from_slice(&escape(value));
                text.push(b'"');
            }
            text.push(b']');
        }
        text.extend_from_slice(b" [message]");
        prop_assert_eq!(read(&text), Some((sent, &b" [message]"[..])));
    }
}
