//! Where traffic goes: `udp://HOST:PORT` or `tcp://HOST:PORT`.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// Transport of the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Udp,
    Tcp,
}

/// A transport and a resolved address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) transport: Transport,
    pub(super) address: SocketAddr,
}

/// Not a target.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("expected udp://HOST:PORT or tcp://HOST:PORT")]
    Scheme,
    #[error("cannot resolve {place}: {source}")]
    Resolve { place: String, source: std::io::Error },
    #[error("{place} has no address")]
    NoAddress { place: String },
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (transport, place) = match text.split_once("://") {
            Some(("udp", place)) => (Transport::Udp, place),
            Some(("tcp", place)) => (Transport::Tcp, place),
            _ => return Err(TargetError::Scheme),
        };
        let mut addresses =
            place.to_socket_addrs().map_err(|source| TargetError::Resolve { place: place.to_owned(), source })?;
        let address = addresses.next().ok_or_else(|| TargetError::NoAddress { place: place.to_owned() })?;
        Ok(Self { transport, address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both transports, IPv4 and IPv6.
    #[test]
    fn targets() {
        let target: Target = "udp://127.0.0.1:4739".parse().unwrap();
        assert_eq!(target, Target { transport: Transport::Udp, address: ([127, 0, 0, 1], 4739).into() });
        let target: Target = "tcp://[::1]:514".parse().unwrap();
        assert_eq!(target.transport, Transport::Tcp);
        assert_eq!(target.address, "[::1]:514".parse().unwrap());
    }

    /// What is wrong is named.
    #[test]
    fn refused() {
        for text in ["127.0.0.1:514", "http://127.0.0.1:514", ""] {
            assert!(matches!(text.parse::<Target>(), Err(TargetError::Scheme)), "{text}");
        }
        for text in ["udp://127.0.0.1", "udp://127.0.0.1:port", "tcp://"] {
            assert!(matches!(text.parse::<Target>(), Err(TargetError::Resolve { .. })), "{text}");
        }
    }
}
