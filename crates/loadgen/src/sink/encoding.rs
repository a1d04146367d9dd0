//! Compression of messages and bodies, where tonic does not take care of it.

use std::io::{self, Read as _};

use bytes::Bytes;

use super::MAX_MESSAGE_BYTES;

/// How messages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    /// By the name in a header of gRPC or HTTP; the Go exporter numbers its zstd.
    pub(super) fn from_name(name: Option<&[u8]>) -> Option<Self> {
        match name {
            None | Some(b"identity" | b"") => Some(Self::Identity),
            Some(b"gzip") => Some(Self::Gzip),
            Some(name) if name == b"zstd" || name.starts_with(b"zstdarrow") => Some(Self::Zstd),
            Some(_) => None,
        }
    }

    /// The message without compression, of a bounded size.
    pub(super) fn decompress(self, bytes: Bytes) -> io::Result<Bytes> {
        let mut decompressed = Vec::new();
        let most = MAX_MESSAGE_BYTES as u64 + 1;
        let length = match self {
            Self::Identity => return Ok(bytes),
            Self::Gzip => flate2::read::GzDecoder::new(&bytes[..]).take(most).read_to_end(&mut decompressed)?,
            Self::Zstd => zstd::Decoder::new(&bytes[..])?.take(most).read_to_end(&mut decompressed)?,
        };
        if length > MAX_MESSAGE_BYTES {
            let reason = format!("more than {MAX_MESSAGE_BYTES} bytes after decompression");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(decompressed.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of gRPC, HTTP and the Go exporter are known; others are not.
    #[test]
    fn names() {
        for (name, encoding) in [
            (None, Some(Encoding::Identity)),
            (Some("identity"), Some(Encoding::Identity)),
            (Some("gzip"), Some(Encoding::Gzip)),
            (Some("zstd"), Some(Encoding::Zstd)),
            (Some("zstdarrow7"), Some(Encoding::Zstd)),
            (Some("br"), None),
        ] {
            assert_eq!(Encoding::from_name(name.map(str::as_bytes)), encoding, "{name:?}");
        }
    }

    /// A small body cannot become more than the largest message; one of the largest size passes.
    #[test]
    fn bombs() {
        let bomb = |length: usize| zstd::encode_all(&vec![0; length][..], 1).unwrap();
        let largest = Encoding::Zstd.decompress(bomb(MAX_MESSAGE_BYTES).into()).unwrap();
        assert_eq!(largest.len(), MAX_MESSAGE_BYTES);
        let error = Encoding::Zstd.decompress(bomb(MAX_MESSAGE_BYTES + 1).into()).unwrap_err();
        assert!(error.to_string().contains("after decompression"), "{error}");
        assert!(Encoding::Gzip.decompress(Bytes::from_static(b"no gzip")).is_err());
        assert_eq!(Encoding::Identity.decompress(Bytes::from_static(b"as it is")).unwrap(), "as it is");
    }
}
