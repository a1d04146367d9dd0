//! Cutting a byte stream into messages (RFC 6587, RFC 5425), without any I/O.
//!
//! The caller owns the buffer. It calls [`Framer::next`] with the bytes that are not consumed yet,
//! handles the [`Step`], and drops the bytes that the step consumed. All state lives in the framer,
//! so a read may be cancelled at any byte, and it does not matter how the stream was cut into reads.
//! No byte is searched twice for a delimiter.

/// How messages are parted from each other on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Framing {
    /// Decided for each frame: `MSG-LEN SP` before `<` or `CEF:` means octet counting, anything else
    /// a line.
    #[default]
    Auto,
    /// Lines that end in LF or CR LF (RFC 6587 section 3.4.2).
    Newline,
    /// `MSG-LEN SP MSG` (RFC 6587 section 3.4.1, RFC 5425 section 4.3).
    OctetCounting,
    /// Messages that end in NUL; LF is text.
    Nul,
}

/// Settings of a [`Framer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramerOptions {
    /// How messages are parted.
    pub framing: Framing,
    /// Longest message in bytes; of a longer one the first bytes are given. At least 1.
    pub max_message_size: usize,
    /// Takes one LF or CR LF off the end of an octet-counted message. By the letter of RFC 6587 it
    /// is part of the message, but common senders count a line end that they do not mean.
    pub trim_trailing_newline: bool,
}

impl Default for FramerOptions {
    fn default() -> Self {
        Self { framing: Framing::Auto, max_message_size: 16 * 1024, trim_trailing_newline: true }
    }
}

/// What is wrong with a stream. Offsets count from the first byte of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// Line ends or NULs between octet-counted frames. They were skipped, nothing is lost.
    #[error("line end or NUL between octet-counted frames at offset {offset}")]
    StrayDelimiter {
        /// Position of the first such byte.
        offset: u64,
    },
    /// What should be MSG-LEN and a space is not. The next frame cannot be found.
    #[error("byte {byte:#04x} at offset {offset} does not fit a message length of 1 to 10 digits and a space")]
    InvalidLength {
        /// Position of the byte.
        offset: u64,
        /// The byte at fault.
        byte: u8,
    },
    /// The stream ended inside an octet-counted frame, whose bytes so far are not a message.
    #[error("stream ended at offset {offset}, {missing} bytes before the end of an octet-counted frame")]
    UnexpectedEnd {
        /// Length of the stream.
        offset: u64,
        /// Bytes that the frame lacks; 1 if its length was not complete.
        missing: u64,
    },
}

/// What to do next. The caller drops `consumed` bytes from the front of its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Step<'a> {
    /// A message.
    Frame {
        /// The message without its frame; never empty.
        message: &'a [u8],
        /// Bytes to drop.
        consumed: usize,
        /// The message was longer; the rest is skipped in later steps.
        truncated: bool,
    },
    /// Bytes that are no message.
    Skip {
        /// Bytes to drop; at least one.
        consumed: usize,
        /// Something to count. The stream stays usable.
        error: Option<FramingError>,
    },
    /// Nothing to do before more bytes arrive; with `eof`, the stream is done.
    NeedMore,
    /// The stream cannot be used any further: close it.
    Error {
        /// What is wrong.
        error: FramingError,
        /// Bytes to drop: all there are.
        consumed: usize,
    },
}

/// More digits than this are no message length.
const MAX_LENGTH_DIGITS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a frame.
    Start,
    /// In a frame that ends in a delimiter; so many of its bytes have been searched for it.
    Delimited { searched: usize },
    /// After a truncated message: skip up to and with the delimiter.
    DiscardDelimited,
    /// After a truncated message: skip so many bytes.
    DiscardCounted { remaining: u64 },
    /// After an error: nothing can be used.
    Failed,
}

/// Cuts one stream into messages. It holds no bytes, only positions.
#[derive(Debug, Clone)]
pub struct Framer {
    options: FramerOptions,
    state: State,
    /// Bytes consumed so far.
    offset: u64,
    /// The last frame was octet counted, and no stray delimiter has been reported since.
    after_counted: bool,
}

/// What the start of a frame says.
enum Header {
    Counted {
        len: u64,
        header_len: usize,
    },
    Incomplete,
    /// Not a message length, because of the byte at this position.
    Invalid {
        at: usize,
    },
}

impl Framer {
    /// A framer at the start of a stream.
    #[must_use]
    pub fn new(options: FramerOptions) -> Self {
        let max_message_size = options.max_message_size.max(1);
        Self {
            options: FramerOptions { max_message_size, ..options },
            state: State::Start,
            offset: 0,
            after_counted: false,
        }
    }

    /// Bytes that the caller's buffer must be able to hold: with so many bytes in it, the next step
    /// is never [`Step::NeedMore`].
    #[must_use]
    pub fn max_buffered(&self) -> usize {
        // MSG-LEN and its space, and either CR LF or the `CEF:` that tells a count from a line.
        self.options.max_message_size.saturating_add(MAX_LENGTH_DIGITS + 1 + 4)
    }

    /// The next step for `buf`, the bytes of the stream that are not consumed yet. `eof` says that
    /// no further bytes will come.
    ///
    /// Between two calls `buf` may only lose what was consumed, and grow at its end.
    #[inline]
    pub fn next<'a>(&mut self, buf: &'a [u8], eof: bool) -> Step<'a> {
        if let Some((message, consumed)) = self.whole_line(buf) {
            self.offset += consumed as u64;
            return Step::Frame { message, consumed, truncated: false };
        }
        self.next_unusual(buf, eof)
    }

    /// A line that begins and ends in `buf`: nearly every step on a stream of lines.
    #[inline]
    fn whole_line<'a>(&mut self, buf: &'a [u8]) -> Option<(&'a [u8], usize)> {
        let first = *buf.first()?;
        let may_be_other = match self.options.framing {
            Framing::Newline => matches!(first, b'\n' | b'\r'),
            Framing::Auto => matches!(first, b'1'..=b'9' | b'\n' | b'\r' | 0),
            Framing::OctetCounting | Framing::Nul => true,
        };
        if self.state != State::Start || may_be_other {
            return None;
        }
        let window = &buf[..buf.len().min(self.options.max_message_size.saturating_add(1))];
        let Some(end) = memchr::memchr(b'\n', window) else {
            self.state = State::Delimited { searched: window.len() };
            return None;
        };
        self.after_counted = false;
        let line = &buf[..end];
        Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
    }

    fn next_unusual<'a>(&mut self, buf: &'a [u8], eof: bool) -> Step<'a> {
        let step = self.step(buf, eof);
        let consumed = match step {
            Step::Frame { consumed, .. } | Step::Skip { consumed, .. } | Step::Error { consumed, .. } => consumed,
            Step::NeedMore => 0,
        };
        self.offset += consumed as u64;
        step
    }

    fn step<'a>(&mut self, buf: &'a [u8], eof: bool) -> Step<'a> {
        match self.state {
            State::Start => self.start(buf, eof),
            State::Delimited { searched } => self.delimited(buf, searched, eof),
            State::DiscardDelimited => self.discard_delimited(buf),
            State::DiscardCounted { remaining } => self.discard_counted(buf, remaining, eof),
            State::Failed => skip_or_wait(buf.len()),
        }
    }

    fn start<'a>(&mut self, buf: &'a [u8], eof: bool) -> Step<'a> {
        match self.options.framing {
            Framing::Newline | Framing::Nul => self.delimited(buf, 0, eof),
            Framing::OctetCounting => match between_frames(buf) {
                0 => self.counted(buf, length_header(buf), eof),
                stray => self.stray(stray),
            },
            Framing::Auto => match between_frames(buf) {
                0 => match auto_header(buf) {
                    header @ Header::Counted { .. } => self.counted(buf, header, eof),
                    Header::Incomplete if !eof => Step::NeedMore,
                    Header::Incomplete | Header::Invalid { .. } => self.delimited(buf, 0, eof),
                },
                stray => self.stray(stray),
            },
        }
    }

    /// Skips delimiters between frames. They are a fault after octet-counted frames only, and one
    /// fault however many reads they come in.
    fn stray<'a>(&mut self, consumed: usize) -> Step<'a> {
        let fault = self.after_counted;
        self.after_counted = false;
        let error = fault.then_some(FramingError::StrayDelimiter { offset: self.offset });
        Step::Skip { consumed, error }
    }

    fn counted<'a>(&mut self, buf: &'a [u8], header: Header, eof: bool) -> Step<'a> {
        let (len, header_len) = match header {
            Header::Counted { len, header_len } => (len, header_len),
            Header::Incomplete if buf.is_empty() || !eof => return Step::NeedMore,
            Header::Incomplete => return self.unexpected_end(buf, 1),
            Header::Invalid { at } => {
                self.state = State::Failed;
                let error = FramingError::InvalidLength { offset: self.offset + at as u64, byte: buf[at] };
                return Step::Error { error, consumed: buf.len() };
            }
        };
        let body = &buf[header_len..];
        let max = self.options.max_message_size;
        // A message that is only too long by the line end to be trimmed is not too long.
        let trimmed_end = if self.options.trim_trailing_newline { 2 } else { 0 };
        let whole = usize::try_from(len).ok().filter(|len| *len <= max.saturating_add(trimmed_end));
        let wanted = whole.unwrap_or(max);
        let Some(body) = body.get(..wanted) else {
            if eof {
                return self.unexpected_end(buf, len.saturating_sub(body.len() as u64));
            }
            return Step::NeedMore;
        };
        self.after_counted = true;
        let consumed = header_len + wanted;
        let remaining = len - wanted as u64;
        self.state = if remaining > 0 { State::DiscardCounted { remaining } } else { State::Start };
        let message = match whole {
            Some(_) if self.options.trim_trailing_newline => trim_newline(body),
            _ => body,
        };
        if message.len() > max {
            return Step::Frame { message: &message[..max], consumed, truncated: true };
        }
        if message.is_empty() {
            return Step::Skip { consumed, error: None };
        }
        Step::Frame { message, consumed, truncated: whole.is_none() }
    }

    fn unexpected_end<'a>(&mut self, buf: &[u8], missing: u64) -> Step<'a> {
        self.state = State::Failed;
        let offset = self.offset + buf.len() as u64;
        Step::Error { error: FramingError::UnexpectedEnd { offset, missing }, consumed: buf.len() }
    }

    fn delimited<'a>(&mut self, buf: &'a [u8], searched: usize, eof: bool) -> Step<'a> {
        self.after_counted = false;
        let max = self.options.max_message_size;
        // A message of `max` bytes can be followed by CR and LF.
        let window = &buf[..buf.len().min(max.saturating_add(2))];
        let found = memchr::memchr(self.delimiter(), &window[searched..]).map(|at| searched + at);
        let (content, mut consumed) = match found {
            Some(at) => (&window[..at], at + 1),
            None if window.is_empty() => return Step::NeedMore,
            None => {
                let cut = window.len() > max + 1 || (window.len() > max && !self.may_end_at(window));
                if !cut && !eof {
                    self.state = State::Delimited { searched: window.len() };
                    return Step::NeedMore;
                }
                (window, window.len())
            }
        };
        let content = match self.options.framing {
            Framing::Nul => content,
            _ => content.strip_suffix(b"\r").unwrap_or(content),
        };
        let truncated = content.len() > max;
        self.state = State::Start;
        if truncated && found.is_none() {
            self.state = State::DiscardDelimited;
            consumed = max;
        }
        let message = &content[..content.len().min(max)];
        if message.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
            return Step::Skip { consumed, error: None };
        }
        Step::Frame { message, consumed, truncated }
    }

    /// Whether the last byte seen can belong to the line end.
    fn may_end_at(&self, window: &[u8]) -> bool {
        self.options.framing != Framing::Nul && window.last() == Some(&b'\r')
    }

    fn discard_delimited<'a>(&mut self, buf: &[u8]) -> Step<'a> {
        match memchr::memchr(self.delimiter(), buf) {
            Some(at) => {
                self.state = State::Start;
                Step::Skip { consumed: at + 1, error: None }
            }
            None => skip_or_wait(buf.len()),
        }
    }

    fn discard_counted<'a>(&mut self, buf: &[u8], remaining: u64, eof: bool) -> Step<'a> {
        let consumed = usize::try_from(remaining).unwrap_or(usize::MAX).min(buf.len());
        let left = remaining - consumed as u64;
        if left > 0 && eof {
            return self.unexpected_end(buf, left);
        }
        self.state = if left > 0 { State::DiscardCounted { remaining: left } } else { State::Start };
        skip_or_wait(consumed)
    }

    fn delimiter(&self) -> u8 {
        if self.options.framing == Framing::Nul { 0 } else { b'\n' }
    }
}

fn skip_or_wait<'a>(consumed: usize) -> Step<'a> {
    if consumed == 0 { Step::NeedMore } else { Step::Skip { consumed, error: None } }
}

/// Length of the delimiters before a frame.
fn between_frames(buf: &[u8]) -> usize {
    buf.iter().take_while(|byte| matches!(byte, b'\n' | b'\r' | 0)).count()
}

/// MSG-LEN and its space at the start of `buf`.
fn length_header(buf: &[u8]) -> Header {
    let mut len = 0u64;
    for (at, &byte) in buf.iter().enumerate() {
        match byte {
            b' ' if at > 0 => return Header::Counted { len, header_len: at + 1 },
            b'0' if at == 0 => return Header::Invalid { at },
            b'0'..=b'9' if at < MAX_LENGTH_DIGITS => len = len * 10 + u64::from(byte - b'0'),
            _ => return Header::Invalid { at },
        }
    }
    Header::Incomplete
}

/// As [`length_header`], and a message must follow that cannot be the text of a line.
fn auto_header(buf: &[u8]) -> Header {
    let header = length_header(buf);
    let Header::Counted { header_len, .. } = header else { return header };
    let body = &buf[header_len..];
    if body.starts_with(b"<") || body.starts_with(b"CEF:") {
        header
    } else if b"CEF:".starts_with(body) {
        Header::Incomplete
    } else {
        Header::Invalid { at: header_len }
    }
}

/// Takes one LF or CR LF off the end.
fn trim_newline(message: &[u8]) -> &[u8] {
    match message.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => message,
    }
}

/// The message in one datagram: all of it but trailing NUL, LF and CR. Empty means no message.
#[must_use]
pub fn datagram(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !matches!(byte, 0 | b'\n' | b'\r'));
    end.map_or(&[], |last| &bytes[..=last])
}

#[cfg(test)]
mod tests;
