//! Buffered input that knows its path and its offset, so that every error can name both.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::PathBuf;

use crate::error::CaptureError;

/// Input of all readers.
#[derive(Debug)]
pub(crate) struct Source<R> {
    input: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    path: PathBuf,
    /// Bytes taken so far.
    offset: u64,
}

impl<R: Read> Source<R> {
    /// Reads the first `count` bytes, or fewer at the end of the file, and gives them beside a source that begins with
    /// them again.
    pub(crate) fn with_prefix(mut input: R, path: PathBuf, count: usize) -> Result<(Vec<u8>, Self), CaptureError> {
        let mut prefix = Vec::with_capacity(count);
        if let Err(source) = input.by_ref().take(count as u64).read_to_end(&mut prefix) {
            let offset = prefix.len() as u64;
            return Err(CaptureError::Read { path, offset, source });
        }
        let input = BufReader::with_capacity(64 * 1024, Cursor::new(prefix.clone()).chain(input));
        let source = Self { input, path, offset: 0 };
        Ok((prefix, source))
    }

    /// Bytes taken so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether all bytes were taken.
    pub(crate) fn at_end(&mut self) -> Result<bool, CaptureError> {
        Ok(self.buffered()?.is_empty())
    }

    /// Appends exactly `length` bytes to `bytes`. Allocates no more than the file holds, whatever `length` says.
    /// `part` and `start` name what is read if the file ends in it.
    pub(crate) fn read_into(
        &mut self,
        bytes: &mut Vec<u8>,
        length: usize,
        part: &'static str,
        start: u64,
    ) -> Result<(), CaptureError> {
        let read =
            self.input.by_ref().take(length as u64).read_to_end(bytes).map_err(|source| self.read_failed(source))?;
        self.offset = self.offset.saturating_add(read as u64);
        if read < length {
            return Err(self.ends_inside(part, start, (length - read) as u64));
        }
        Ok(())
    }

    /// Reads `N` bytes.
    pub(crate) fn read_array<const N: usize>(
        &mut self,
        part: &'static str,
        start: u64,
    ) -> Result<[u8; N], CaptureError> {
        let mut array = [0; N];
        let mut filled = 0;
        while filled < N {
            let available = self.buffered()?;
            let count = available.len().min(N - filled);
            if count == 0 {
                return Err(self.ends_inside(part, start, (N - filled) as u64));
            }
            array[filled..filled + count].copy_from_slice(&available[..count]);
            self.consume(count);
            filled += count;
        }
        Ok(array)
    }

    /// Passes over `length` bytes.
    pub(crate) fn discard(&mut self, length: u64, part: &'static str, start: u64) -> Result<(), CaptureError> {
        let mut left = length;
        while left > 0 {
            let available = self.buffered()?.len();
            if available == 0 {
                return Err(self.ends_inside(part, start, left));
            }
            let count = available.min(usize::try_from(left).unwrap_or(usize::MAX));
            self.consume(count);
            left -= count as u64;
        }
        Ok(())
    }

    /// The bytes at hand; empty only at the end of the file.
    pub(crate) fn buffered(&mut self) -> Result<&[u8], CaptureError> {
        // Ask twice: the borrow checker does not let a loop return what it has just tested.
        loop {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_failed(error)),
            }
        }
        let (path, offset) = (&self.path, self.offset);
        self.input.fill_buf().map_err(|source| CaptureError::Read { path: path.clone(), offset, source })
    }

    /// Takes `count` of the bytes at hand.
    pub(crate) fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.offset = self.offset.saturating_add(count as u64);
    }

    /// A number of the format at `offset` that cannot be right.
    pub(crate) fn malformed(
        &self,
        field: &'static str,
        offset: u64,
        found: u64,
        expected: &'static str,
    ) -> CaptureError {
        CaptureError::Malformed { path: self.path.clone(), offset, field, found, expected }
    }

    fn ends_inside(&self, part: &'static str, offset: u64, missing: u64) -> CaptureError {
        CaptureError::EndsInside { path: self.path.clone(), offset, part, missing }
    }

    fn read_failed(&self, source: io::Error) -> CaptureError {
        CaptureError::Read { path: self.path.clone(), offset: self.offset, source }
    }
}
