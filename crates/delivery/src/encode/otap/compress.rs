//! Compression of single buffers, with one context for a stream.

use zstd::bulk::Compressor as Zstd;
use zstd::zstd_safe::{CParameter, Strategy};

use crate::encode::error::EncodeError;

/// Below this a frame is hardly smaller than what is in it.
const SMALLEST: usize = 48;
/// From this level on zstd has parameters that suit columns of numbers. Below, it looks for matches of six or seven bytes,
/// which numbers of eight bytes hardly have; and in long columns it remembers few places and looks back 512 KiB only. With
/// these parameters the integers of flow records shrink by a third, in less time.
const LEVEL_OF_NUMBERS: i32 = 3;
/// Bytes from which on a buffer is long.
const LONG: usize = 256 * 1024;

/// What a buffer has to do with the parameters of zstd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tuning {
    Short,
    Long,
    /// Numbers of two bytes, which are ids and keys: for the same sequence as before over a long way it is looked apart from
    /// short matches, which would lead away from it.
    Narrow,
}

impl Tuning {
    fn of(bytes: usize, width: usize) -> Self {
        match width {
            2 => Self::Narrow,
            _ if bytes >= LONG => Self::Long,
            _ => Self::Short,
        }
    }

    /// 0 stands for what the level has.
    fn parameters(self) -> [CParameter; 4] {
        let (strategy, shortest, hash, window) = match self {
            Self::Short => (Strategy::ZSTD_fast, 5, 0, 0),
            Self::Long => (Strategy::ZSTD_fast, 5, 16, 21),
            Self::Narrow => (Strategy::ZSTD_dfast, 6, 16, 21),
        };
        [
            CParameter::Strategy(strategy),
            CParameter::MinMatch(shortest),
            CParameter::HashLog(hash),
            CParameter::WindowLog(window),
        ]
    }
}

/// In place of the length of a buffer: it is not compressed.
const NOT_COMPRESSED: i64 = -1;

/// Appends buffers as the stream has them.
pub(super) struct Compressor {
    zstd: Option<Zstd<'static>>,
    /// The level is given other parameters than its own, and for which buffers it was last.
    tuned: Option<Tuning>,
    room: Vec<u8>,
}

impl Compressor {
    /// A compressor of a level; `None` leaves buffers as they are.
    pub(super) fn new(level: Option<i32>) -> Result<Self, EncodeError> {
        let zstd = level.map(Zstd::new).transpose().map_err(|error| failed(&error))?;
        let mut new = Self { zstd, tuned: None, room: Vec::new() };
        if level.is_some_and(|level| level < LEVEL_OF_NUMBERS) {
            new.tune(Tuning::Short)?;
        }
        Ok(new)
    }

    fn tune(&mut self, tuning: Tuning) -> Result<(), EncodeError> {
        let Some(zstd) = &mut self.zstd else { return Ok(()) };
        let set = tuning.parameters().into_iter().try_for_each(|parameter| zstd.set_parameter(parameter));
        self.tuned = Some(tuning);
        set.map_err(|error| failed(&error))
    }

    /// Whether buffers carry their length, as those of compressed messages do.
    pub(super) fn is_on(&self) -> bool {
        self.zstd.is_some()
    }

    /// Appends a buffer of values of `width` bytes: as it is, or its length and the compressed bytes.
    pub(super) fn append(&mut self, raw: &[u8], width: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if !self.is_on() {
            out.extend_from_slice(raw);
            return Ok(());
        }
        if raw.is_empty() {
            return Ok(());
        }
        let wanted = Tuning::of(raw.len(), width);
        if raw.len() >= SMALLEST && self.tuned.is_some_and(|tuning| tuning != wanted) {
            self.tune(wanted)?;
        }
        if let Some(zstd) = self.zstd.as_mut().filter(|_| raw.len() >= SMALLEST) {
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
