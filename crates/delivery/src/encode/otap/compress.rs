//! Compression of single buffers, with one context for a stream.

use zstd::bulk::Compressor as Zstd;
use zstd::zstd_safe::CParameter;

use crate::encode::error::EncodeError;

/// Below this a frame is hardly smaller than what is in it.
const SMALLEST: usize = 48;
/// From this level on zstd has parameters that suit columns of numbers. Below, it looks for matches of six or seven bytes,
/// which numbers of eight bytes hardly have; and in long columns it remembers few places and looks back 512 KiB only. With
/// these parameters the integers of flow records shrink by a third, in less time.
const LEVEL_OF_NUMBERS: i32 = 3;
const SHORTEST_MATCH: CParameter = CParameter::MinMatch(5);
const OF_LONG: [CParameter; 2] = [CParameter::HashLog(16), CParameter::WindowLog(21)];
/// 0 stands for what the level has.
const OF_SHORT: [CParameter; 2] = [CParameter::HashLog(0), CParameter::WindowLog(0)];
/// Bytes from which on a buffer is long.
const LONG: usize = 256 * 1024;
/// In place of the length of a buffer: it is not compressed.
const NOT_COMPRESSED: i64 = -1;

/// Appends buffers as the stream has them.
pub(super) struct Compressor {
    zstd: Option<Zstd<'static>>,
    /// The level is given other parameters than its own.
    is_tuned: bool,
    /// They are those for long buffers.
    is_long: bool,
    room: Vec<u8>,
}

impl Compressor {
    /// A compressor of a level; `None` leaves buffers as they are.
    pub(super) fn new(level: Option<i32>) -> Result<Self, EncodeError> {
        let mut zstd = level.map(Zstd::new).transpose().map_err(|error| failed(&error))?;
        if let Some(zstd) = zstd.as_mut().filter(|_| level.is_some_and(|level| level < LEVEL_OF_NUMBERS)) {
            zstd.set_parameter(SHORTEST_MATCH).map_err(|error| failed(&error))?;
        }
        let is_tuned = level.is_some_and(|level| level < LEVEL_OF_NUMBERS);
        Ok(Self { zstd, is_tuned, is_long: false, room: Vec::new() })
    }

    /// Whether buffers carry their length, as those of compressed messages do.
    pub(super) fn is_on(&self) -> bool {
        self.zstd.is_some()
    }

    /// Appends a buffer: as it is, or its length and the compressed bytes.
    pub(super) fn append(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Some(zstd) = &mut self.zstd else {
            out.extend_from_slice(raw);
            return Ok(());
        };
        if raw.is_empty() {
            return Ok(());
        }
        if raw.len() >= SMALLEST {
            if self.is_tuned && self.is_long != (raw.len() >= LONG) {
                self.is_long = !self.is_long;
                let parameters = if self.is_long { OF_LONG } else { OF_SHORT };
                let set = parameters.into_iter().try_for_each(|parameter| zstd.set_parameter(parameter));
                set.map_err(|error| failed(&error))?;
            }
            self.room.clear();
            self.room.reserve(zstd::zstd_safe::compress_bound(raw.len()));
            let written = zstd.compress_to_buffer(raw, &mut self.room).map_err(|error| failed(&error))?;
            if written < raw.len() {
                out.extend_from_slice(&(raw.len() as i64).to_le_bytes());
                out.extend_from_slice(&self.room);
                return Ok(());
            }
        }
        out.extend_from_slice(&NOT_COMPRESSED.to_le_bytes());
        out.extend_from_slice(raw);
        Ok(())
    }
}

fn failed(error: &std::io::Error) -> EncodeError {
    EncodeError::Compression { message: error.to_string() }
}
