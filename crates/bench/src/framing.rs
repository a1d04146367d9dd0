//! What receiving alone costs: `catchment-bench framing-only lines` takes one TCP connection, finds the frames in it with
//! the framer of our receiver, and counts them. Nothing is decided on, copied or decoded.
//!
//! It is to the table `sampling` what an engine is: a process of its own on the core of the engine. One thread, blocking
//! reads of at most 64 KiB as the receivers make them, no runtime. The first line of its output is the address that it
//! listens on, the second the number of frames; then it waits for the end of its input, so that its CPU time can be read.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use catchment_ipfix::stream_message_length;
use catchment_syslog::{Framer, FramerOptions, Framing, Step};

/// The most that one read takes.
const READ_BYTES: usize = 64 * 1024;

/// In the place of the name of a table.
pub(crate) const COMMAND: &str = "framing-only";

/// Takes one connection and finds `what`: `lines` or `messages`.
pub(crate) fn run(what: Option<&str>) -> io::Result<()> {
    match what {
        Some("lines") => serve(lines()),
        Some("messages") => serve(messages),
        _ => Err(io::Error::other("expected what to find: `lines`, or `messages` of IPFIX")),
    }
}

/// Takes one connection; `frame` gives the length of the frame at the start of some bytes, if they have all of it.
fn serve(frame: impl FnMut(&[u8]) -> io::Result<Option<usize>>) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    let (stream, _) = listener.accept()?;
    writeln!(out, "{}", count(stream, frame)?)?;
    out.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink()).map(|_| ())
}

/// Counts the frames of a stream.
fn count(mut stream: TcpStream, mut frame: impl FnMut(&[u8]) -> io::Result<Option<usize>>) -> io::Result<u64> {
    let mut buffer = vec![0; 2 * READ_BYTES];
    let (mut frames, mut held) = (0, 0);
    loop {
        // What is left of one read is less than a frame, of which none is longer than a read.
        let read = stream.read(buffer.get_mut(held..held + READ_BYTES).unwrap_or_default())?;
        if read == 0 {
            return Ok(frames);
        }
        let all = buffer.get(..held + read).unwrap_or_default();
        let mut done = 0;
        while let Some(length) = frame(all.get(done..).unwrap_or_default())? {
            done += length;
            frames += 1;
        }
        buffer.copy_within(done..held + read, 0);
        held = held + read - done;
    }
}

/// Lines, as the receiver of syslog finds them.
fn lines() -> impl FnMut(&[u8]) -> io::Result<Option<usize>> {
    let mut framer = Framer::new(FramerOptions { framing: Framing::Newline, ..FramerOptions::default() });
    move |bytes| match framer.next(bytes, false) {
        Step::Frame { consumed, .. } => Ok(Some(consumed)),
        Step::NeedMore => Ok(None),
        Step::Skip { .. } | Step::Error { .. } => Err(io::Error::other("the stream has something else than lines")),
    }
}

/// Messages of IPFIX, as its receiver finds them.
fn messages(bytes: &[u8]) -> io::Result<Option<usize>> {
    let length = stream_message_length(bytes).map_err(io::Error::other)?;
    Ok(length.filter(|length| *length <= bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: Vec<u8>, frame: impl FnMut(&[u8]) -> io::Result<Option<usize>>) -> io::Result<u64> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let mut sender = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        let sending = std::thread::spawn(move || sender.write_all(&bytes));
        let found = count(listener.accept().expect("a connection").0, frame);
        sending.join().expect("no panic").expect("sent");
        found
    }

    /// All lines of a stream that many reads cut anywhere.
    #[test]
    fn counts_lines() {
        let bytes: Vec<u8> = (0..20_000).flat_map(|number| format!("<14>line {number}\n").into_bytes()).collect();
        assert_eq!(sent(bytes, lines()).expect("lines"), 20_000);
    }

    /// Messages by their length; what is no message is an error.
    #[test]
    fn counts_messages() {
        let message = [&[0, 10, 0, 20][..], &[0; 16]].concat();
        assert_eq!(sent(message.repeat(9_000), messages).expect("messages"), 9_000);
        assert!(sent(b"<14>no message of IPFIX".to_vec(), messages).is_err());
    }
}
