//! Which core's socket gets a datagram.
//!
//! Every core binds its own socket to one address (SO_REUSEPORT), and the kernel spreads datagrams by source address *and*
//! port. Some exporters send templates and data from different ports, and what one core has learned is nothing to another:
//! here all datagrams of a source address are steered to one socket, by a classic BPF program.

use std::io;

use nix::libc::{
    BPF_ABS, BPF_ALU, BPF_B, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_MISC, BPF_MOD, BPF_MUL, BPF_RET, BPF_RSH, BPF_TAX,
    BPF_W, BPF_X, BPF_XOR, SKF_NET_OFF, sock_filter, sock_fprog,
};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::UdpSocket;

/// Offsets of the source address in the headers of IPv4 and IPv6.
const IPV4_SOURCE: u32 = 12;
const IPV6_SOURCE: u32 = 8;
/// Returns the accumulator (linux/filter.h).
const BPF_A: u32 = 0x10;
/// Spreads addresses that differ in their last bits only.
const MULTIPLIER: u32 = 0x9e37_79b1;

fn instruction(code: u32, jump_true: u8, k: u32) -> sock_filter {
    // Codes have 16 bits; the two jumps are relative, and none is needed where a comparison fails.
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt: jump_true, jf: 0, k }
}

fn load(size: u32, offset: u32) -> sock_filter {
    // Offsets from here on count from the network header, whatever the packet's data begins with.
    instruction(BPF_LD | size | BPF_ABS, 0, SKF_NET_OFF.cast_unsigned().wrapping_add(offset))
}

/// The program: a hash of the source address, modulo the number of sockets.
fn program(sockets: u32) -> Vec<sock_filter> {
    let to_x = instruction(BPF_MISC | BPF_TAX, 0, 0);
    let xor = instruction(BPF_ALU | BPF_XOR | BPF_X, 0, 0);
    let mut program = vec![load(BPF_B, 0), instruction(BPF_ALU | BPF_RSH | BPF_K, 0, 4)];
    // IPv4 skips what folds the four words of an IPv6 address, and loads its one.
    let mut ipv6 = vec![load(BPF_W, IPV6_SOURCE)];
    for word in 1..4 {
        ipv6.extend([to_x, load(BPF_W, IPV6_SOURCE + 4 * word), xor]);
    }
    ipv6.push(instruction(BPF_JMP, 0, 1));
    let over = u8::try_from(ipv6.len()).unwrap_or_default();
    program.push(instruction(BPF_JMP | BPF_JEQ | BPF_K, over, 4));
    program.extend(ipv6);
    program.push(load(BPF_W, IPV4_SOURCE));
    program.extend([
        instruction(BPF_ALU | BPF_MUL | BPF_K, 0, MULTIPLIER),
        instruction(BPF_ALU | BPF_RSH | BPF_K, 0, 16),
        instruction(BPF_ALU | BPF_MOD | BPF_K, 0, sockets),
        instruction(BPF_RET | BPF_A, 0, 0),
    ]);
    program
}

/// Steers datagrams by their source address among the `sockets` sockets that share the address of `socket`. One of them
/// does it for all.
pub(crate) fn by_source_address(socket: &UdpSocket, sockets: usize) -> io::Result<()> {
    let mut filter = program(u32::try_from(sockets).unwrap_or(u32::MAX).max(1));
    let program = sock_fprog { len: u16::try_from(filter.len()).unwrap_or_default(), filter: filter.as_mut_ptr() };
    Ok(setsockopt(socket, sockopt::AttachReusePortCbpf, &program)?)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket as StdSocket};
    use std::time::Duration;

    use socket2::{Domain, Protocol, Socket, Type};

    use super::*;

    fn shared(address: SocketAddr) -> UdpSocket {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP)).expect("socket");
        socket.set_reuse_port(true).expect("shared");
        socket.set_nonblocking(true).expect("nonblocking");
        socket.bind(&address.into()).expect("bound");
        UdpSocket::from_std(socket.into()).expect("registered")
    }

    /// Receives one datagram on whichever socket it is; gives the number of the socket.
    async fn received(sockets: [&UdpSocket; 2]) -> usize {
        let mut bytes = [[0; 8]; 2];
        let [first, second] = &mut bytes;
        let either = async {
            tokio::select! {
                got = sockets[0].recv(first) => got.map(|_| 0),
                got = sockets[1].recv(second) => got.map(|_| 1),
            }
        };
        tokio::time::timeout(Duration::from_secs(10), either).await.expect("a datagram").expect("received")
    }

    /// All ports of an address go to one socket, and addresses are spread over both.
    #[tokio::test]
    async fn one_address_one_socket() {
        let first = shared("127.0.0.1:0".parse().expect("address"));
        let target = first.local_addr().expect("address");
        let second = shared(target);
        by_source_address(&first, 2).expect("steered");
        let mut seen = [false; 2];
        for host in 1..=16 {
            let mut chosen = None;
            for _ in 0..8 {
                let sender = StdSocket::bind((format!("127.0.0.{host}"), 0)).expect("sender");
                let _ = sender.send_to(b"x", target).expect("sent");
                let socket = received([&first, &second]).await;
                assert_eq!(*chosen.get_or_insert(socket), socket, "127.0.0.{host}");
                seen[socket] = true;
            }
        }
        assert_eq!(seen, [true, true]);
    }

    /// IPv6 addresses are read as such: the program does not fail and one address stays with one socket.
    #[tokio::test]
    async fn ipv6_is_steered_too() {
        let first = shared("[::1]:0".parse().expect("address"));
        let target = first.local_addr().expect("address");
        let second = shared(target);
        by_source_address(&first, 2).expect("steered");
        let mut chosen = None;
        for _ in 0..8 {
            let sender = StdSocket::bind("[::1]:0").expect("sender");
            let _ = sender.send_to(b"x", target).expect("sent");
            let socket = received([&first, &second]).await;
            assert_eq!(*chosen.get_or_insert(socket), socket);
        }
    }
}
