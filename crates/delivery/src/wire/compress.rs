//! Compression of whole messages, and capped decompression of answers.
//!
//! A compressor keeps its context from message to message: to make one anew costs more than compressing a small message.
//! A message is compressed here or inside (by Arrow IPC), never both; that is for the configuration to see to.

use std::io::{self, Cursor, Read};

use bytes::Bytes;
use flate2::{Compress, Crc, FlushCompress, Status};

/// How messages are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip, level 0 to 9.
    Gzip(u32),
    /// zstd, level 1 to 22; 1 is right for telemetry.
    Zstd(i32),
}

impl Compression {
    /// Its name in `grpc-encoding` and `content-encoding`; `None` without compression.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip(_) => Some("gzip"),
            Self::Zstd(_) => Some("zstd"),
        }
    }
}

/// Largest buffer that is kept between messages, in bytes.
const KEPT: usize = 1 << 20;

/// A compressor with its context.
pub struct Compressor {
    kind: Kind,
    scratch: Vec<u8>,
}

enum Kind {
    Gzip(Compress),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// A compressor; `None` for [`Compression::None`].
    ///
    /// # Errors
    ///
    /// If there is no such level.
    pub fn new(compression: Compression) -> io::Result<Option<Self>> {
        let kind = match compression {
            Compression::None => return Ok(None),
            Compression::Gzip(level) if level > 9 => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("gzip level {level} is not in 0 to 9"),
                ));
            }
            Compression::Gzip(level) => Kind::Gzip(Compress::new(flate2::Compression::new(level), false)),
            Compression::Zstd(level) if !(1..=22).contains(&level) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("zstd level {level} is not in 1 to 22"),
                ));
            }
            Compression::Zstd(level) => Kind::Zstd(zstd::bulk::Compressor::new(level)?),
        };
        Ok(Some(Self { kind, scratch: Vec::new() }))
    }

    /// `raw` as one complete gzip member or zstd frame, behind `prefix` bytes of zero.
    ///
    /// # Errors
    ///
    /// If the library fails, which is a matter of memory only.
    pub fn compress(&mut self, raw: &[u8], prefix: usize) -> io::Result<Bytes> {
        let scratch = &mut self.scratch;
        scratch.clear();
        scratch.resize(prefix, 0);
        match &mut self.kind {
            Kind::Gzip(context) => {
                context.reset();
                gzip(context, raw, scratch)?;
            }
            Kind::Zstd(context) => {
                scratch.reserve(zstd::zstd_safe::compress_bound(raw.len()));
                let mut cursor = Cursor::new(&mut *scratch);
                cursor.set_position(prefix as u64);
                context.compress_to_buffer(raw, &mut cursor)?;
            }
        }
        let bytes = Bytes::copy_from_slice(scratch);
        scratch.clear();
        scratch.shrink_to(KEPT);
        Ok(bytes)
    }
}

/// A member by RFC 1952: no name, no time.
fn gzip(context: &mut Compress, raw: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
    let mut crc = Crc::new();
    crc.update(raw);
    loop {
        out.reserve((raw.len() / 4).max(1 << 10));
        let read = usize::try_from(context.total_in()).unwrap_or(usize::MAX).min(raw.len());
        match context.compress_vec(&raw[read..], out, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => break,
            Ok(Status::Ok | Status::BufError) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&crc.amount().to_le_bytes());
    Ok(())
}

/// Undoes a compression by its name, up to `limit` bytes.
///
/// # Errors
///
/// If the name is unknown, the data is damaged, or there is more than `limit` in it.
pub fn decompress(name: &str, data: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    /// Largest window of zstd, 8 MiB: what its command line uses at ordinary levels.
    const WINDOW_LOG: u32 = 23;
    let mut out = Vec::new();
    let most = (limit as u64).saturating_add(1);
    match name {
        "identity" => out.extend_from_slice(&data[..data.len().min(limit.saturating_add(1))]),
        "gzip" => {
            flate2::read::MultiGzDecoder::new(data).take(most).read_to_end(&mut out)?;
        }
        "zstd" => {
            let mut decoder = zstd::stream::read::Decoder::new(data)?;
            decoder.window_log_max(WINDOW_LOG)?;
            decoder.take(most).read_to_end(&mut out)?;
        }
        other => {
            return Err(io::Error::new(io::ErrorKind::Unsupported, format!("encoding {other:?} is not supported")));
        }
    }
    if out.len() > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("more than {limit} bytes decompressed")));
    }
    Ok(out)
}
