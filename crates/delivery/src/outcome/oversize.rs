//! Recognises the answers that mean "this message is too large".
//!
//! There is no code of its own for it: gRPC in Go, Java and C++ answers RESOURCE_EXHAUSTED, tonic OUT_OF_RANGE, and both
//! codes mean other things too. So the wording decides.

/// Whether `message` says that a message was too large. `Some(Some((found, limit)))` with both sizes in bytes if it names
/// them, `Some(None)` if it does not; `None` for any other message.
#[must_use]
pub fn recognise(message: &str) -> Option<Option<(u64, u64)>> {
    let text = message.to_ascii_lowercase();
    // Go, also after decompression, Java ("gRPC message exceeds maximum size 4194304: 5000000") and C++ ("Received
    // message larger than max (A vs. B)"); the server of Go's HTTP library; tonic.
    let found = if text.contains("message") && text.contains("larger than max") {
        Some(numbers_after(&text, "larger than max"))
    } else if text.contains("message exceeds maximum size") {
        Some(numbers_after(&text, "message exceeds maximum size").map(|(limit, found)| (found, limit)))
    } else if text.contains("message length too large") {
        Some(numbers_after(&text, "message length too large"))
    } else if text.contains("request body too large")
        || text.contains("length limit exceeded")
        // tonic again, where the message was compressed.
        || (text.contains("size limit") && text.contains("exceeded while decompressing"))
    {
        Some(None)
    } else {
        None
    };
    // Sizes that contradict the statement say nothing.
    found.map(|sizes| sizes.filter(|(found, limit)| found > limit && *limit > 0))
}

/// The first two numbers of `text` behind `start`.
fn numbers_after(text: &str, start: &str) -> Option<(u64, u64)> {
    let (_, rest) = text.split_once(start)?;
    let mut numbers =
        rest.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty()).map(str::parse::<u64>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
