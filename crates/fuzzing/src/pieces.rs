//! Ways of cutting bytes into the pieces that a connection or a file gives at a time.

use std::io::{self, Read};

/// Longest piece of [`Pieces::Mixed`], in bytes.
const LONGEST_PIECE: usize = 40;

/// How bytes arrive.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pieces {
    /// All at once.
    Whole,
    /// One by one.
    Single,
    /// In pieces of 1 to [`LONGEST_PIECE`] bytes, whose lengths follow from a seed.
    Mixed(u8),
}

impl Pieces {
    /// Cuts `bytes`; no piece is empty.
    pub(crate) fn cut(self, mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut state = match self {
            Self::Mixed(seed) => u32::from(seed),
            Self::Whole | Self::Single => 0,
        };
        std::iter::from_fn(move || {
            if bytes.is_empty() {
                return None;
            }
            let length = match self {
                Self::Whole => bytes.len(),
                Self::Single => 1,
                Self::Mixed(_) => {
                    // The generator of Numerical Recipes; its high bits are good enough for lengths.
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    1 + (state >> 16) as usize % LONGEST_PIECE
                }
            };
            let (piece, rest) = bytes.split_at(length.min(bytes.len()));
            bytes = rest;
            Some(piece)
        })
    }
}

/// Input that hands out at most so many bytes at a time.
pub(crate) struct Dribble<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at_most: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.at_most);
        self.bytes.read(&mut buffer[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However bytes are cut, the pieces together are the bytes, and none is empty.
    #[test]
    fn pieces_make_the_whole() {
        let bytes: Vec<u8> = (0..=255).collect();
        for pieces in [Pieces::Whole, Pieces::Single, Pieces::Mixed(0), Pieces::Mixed(77)] {
            let cut: Vec<&[u8]> = pieces.cut(&bytes).collect();
            assert_eq!(cut.concat(), bytes, "{pieces:?}");
            assert!(cut.iter().all(|piece| !piece.is_empty()), "{pieces:?}");
        }
        assert_eq!(Pieces::Mixed(3).cut(&[]).count(), 0);
        assert!(Pieces::Mixed(3).cut(&bytes).count() > 5);
    }

    /// A dribble gives all bytes, a few at a time.
    #[test]
    fn dribbles_give_everything() {
        let mut dribble = Dribble { bytes: b"abcdefgh", at_most: 3 };
        let mut buffer = [0; 8];
        assert_eq!(dribble.read(&mut buffer).expect("memory"), 3);
        let mut rest = Vec::new();
        assert_eq!(dribble.read_to_end(&mut rest).expect("memory"), 5);
        assert_eq!(rest, b"defgh");
    }
}
