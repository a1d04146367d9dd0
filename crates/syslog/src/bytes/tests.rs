use proptest::prelude::*;

use super::*;

/// Each class has the bytes that its rule names.
#[test]
fn classes_of_bytes() {
    for byte in 0..=u8::MAX {
        let alphanumeric = byte.is_ascii_alphanumeric();
        for (class, wanted) in [
            (HOST, alphanumeric || b"._:%/@+-".contains(&byte)),
            (TAG, alphanumeric || b"-_./@#+~\\".contains(&byte)),
            (SD_NAME, (33..=126).contains(&byte) && !b"=]\"".contains(&byte)),
            (CEF_KEY, alphanumeric || b"_.-[]".contains(&byte)),
            (STAMP_MORE, byte.is_ascii_uppercase() || b"0123456789 :+-".contains(&byte)),
            (DIGIT, byte.is_ascii_digit()),
            (COLON, byte == b':'),
            (SPACE, byte == b' '),
        ] {
            assert_eq!(class_of(byte) & class != 0, wanted, "{byte} {class}");
        }
    }
}

/// Two digits in every pair, and any other byte anywhere is refused.
#[test]
fn pairs_of_digits() {
    let read = |text: &[u8; 8]| digit_pairs(u64::from_le_bytes(*text), b"00:00:00").map(u64::to_le_bytes);
    for value in 0..100u8 {
        let text = format!("{value:02}:{:02}:{:02}", 99 - value, value);
        let pairs = read(text.as_bytes().try_into().unwrap()).unwrap();
        assert_eq!([pairs[0], pairs[3], pairs[6]], [value, 99 - value, value]);
    }
    let fine = *b"10:20:30";
    for at in 0..8 {
        for byte in 0..=u8::MAX {
            let mut text = fine;
            text[at] = byte;
            let wanted = if fine[at] == b':' { byte == b':' } else { byte.is_ascii_digit() };
            assert_eq!(read(&text).is_some(), wanted, "{text:?}");
        }
    }
}

proptest! {
    /// The searches find what a plain loop finds, near and far.
    #[test]
    fn finds_what_a_loop_finds(
        text in prop::collection::vec(prop_oneof![8 => any::<u8>(), 1 => Just(b'='), 1 => Just(b'\\')], 0..80),
        run in 0usize..60,
    ) {
        let text = [vec![b'x'; run], text].concat();
        prop_assert_eq!(find(&text, b'='), text.iter().position(|byte| *byte == b'='));
        prop_assert_eq!(find2(&text, b'=', b'\\'), text.iter().position(|byte| b"=\\".contains(byte)));
        let all: Vec<_> = (0..text.len()).filter(|at| text[*at] == b'=').collect();
        prop_assert_eq!(Positions::new(&text, 0, b'=').collect::<Vec<_>>(), &all[..]);
        let late: Vec<_> = all.into_iter().filter(|at| *at >= 5).collect();
        prop_assert_eq!(Positions::new(&text, 5, b'=').collect::<Vec<_>>(), late);
        prop_assert_eq!(span(&text, HOST), text.iter().take_while(|byte| class_of(**byte) & HOST != 0).count());
        prop_assert_eq!(span_back(&text, TAG), text.iter().rev().take_while(|byte| class_of(**byte) & TAG != 0).count());
    }
}
