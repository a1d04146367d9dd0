//! Where traffic goes: `udp://HOST:PORT`, `tcp://HOST:PORT`, `file:PATH` or `pcap:PATH`.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr;

/// A place for traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Udp(SocketAddr),
    Tcp(SocketAddr),
    /// Messages as in a TCP stream.
    File(PathBuf),
    /// Messages as datagrams of a capture.
    Pcap(PathBuf),
}

/// Not a target.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("expected udp://HOST:PORT, tcp://HOST:PORT, file:PATH or pcap:PATH")]
    Scheme,
    #[error("cannot resolve {place}: {source}")]
    Resolve { place: String, source: std::io::Error },
    #[error("{place} has no address")]
    NoAddress { place: String },
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text.split_once("://") {
            Some(("udp", place)) => return resolve(place).map(Self::Udp),
            Some(("tcp", place)) => return resolve(place).map(Self::Tcp),
            _ => {}
        }
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("pcap", path)) if !path.is_empty() => Ok(Self::Pcap(path.into())),
            _ => Err(TargetError::Scheme),
        }
    }
}

/// The first address of HOST:PORT.
pub(super) fn resolve(place: &str) -> Result<SocketAddr, TargetError> {
    let mut addresses =
        place.to_socket_addrs().map_err(|source| TargetError::Resolve { place: place.to_owned(), source })?;
    addresses.next().ok_or_else(|| TargetError::NoAddress { place: place.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both transports, IPv4 and IPv6, and both kinds of files.
    #[test]
    fn targets() {
        for (text, expected) in [
            ("udp://127.0.0.1:4739", Target::Udp(([127, 0, 0, 1], 4739).into())),
            ("tcp://[::1]:514", Target::Tcp("[::1]:514".parse().unwrap())),
            ("file:flows.ipfix", Target::File("flows.ipfix".into())),
            ("file:/tmp/a:b", Target::File("/tmp/a:b".into())),
            ("pcap:/tmp/flows.pcap", Target::Pcap("/tmp/flows.pcap".into())),
        ] {
            assert_eq!(text.parse::<Target>().unwrap(), expected);
        }
    }

    /// What is wrong is named.
    #[test]
    fn refused() {
        for text in ["127.0.0.1:514", "http://127.0.0.1:514", "file:", "pcap", ""] {
            assert!(matches!(text.parse::<Target>(), Err(TargetError::Scheme)), "{text}");
        }
        for text in ["udp://127.0.0.1", "udp://127.0.0.1:port", "tcp://"] {
            assert!(matches!(text.parse::<Target>(), Err(TargetError::Resolve { .. })), "{text}");
        }
    }
}
