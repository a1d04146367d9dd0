use std::cell::RefCell;

use super::super::intake::tests::Fake;
use super::super::sockets::UdpIngress;
use super::*;

async fn ingress(receive_buffer: usize) -> (UdpIngress, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("port");
    let address = socket.local_addr().expect("address");
    (UdpIngress::new(socket, receive_buffer).expect("options"), address)
}

/// Payloads and drops of what a stopped intake still takes out of the kernel.
async fn drain(ingress: UdpIngress, intake: &Intake<Fake>) -> (Vec<Vec<u8>>, u64) {
    intake.stop.cancel();
    let payloads = RefCell::new(Vec::new());
    let UdpIngress { socket, granted, drops } = ingress;
    receive_datagrams(socket, granted, Rc::clone(&drops), intake, |datagram| match datagram {
        Datagram::Received { bytes, truncated, time_unix_nano, .. } => {
            assert!(!truncated && time_unix_nano > 0);
            payloads.borrow_mut().push(bytes.to_vec());
        }
        Datagram::Failed => panic!("a datagram without sender"),
    })
    .await;
    (payloads.into_inner(), drops.total())
}

/// More datagrams than slots, in order, from one byte to the largest there is; an empty one too.
#[tokio::test]
async fn datagrams_of_all_sizes_come_whole() {
    let (ingress, address) = ingress(4 * 1024 * 1024).await;
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("port");
    let sizes: Vec<usize> = (0..3 * SLOTS).map(|at| at * 7).chain([65_507, 0, 1]).collect();
    for (at, size) in sizes.iter().enumerate() {
        assert_eq!(sender.send_to(&vec![at as u8; *size], address).expect("sent"), *size);
    }
    let (payloads, dropped) = drain(ingress, &Fake::intake(8_192)).await;
    assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), sizes);
    assert!(payloads.iter().enumerate().all(|(at, payload)| payload.iter().all(|byte| *byte == at as u8)));
    assert_eq!(dropped, 0);
}

/// What the kernel had no room for is counted, also after the last datagram that got through.
#[tokio::test]
async fn every_drop_of_the_kernel_is_counted() {
    const SENT: usize = 500;
    let (ingress, address) = ingress(4_096).await;
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("port");
    for _ in 0..SENT {
        let _ = sender.send_to(&[7; 200], address).expect("sent");
    }
    let (payloads, dropped) = drain(ingress, &Fake::intake(8_192)).await;
    assert!(!payloads.is_empty() && payloads.len() < SENT);
    assert_eq!(payloads.len() as u64 + dropped, SENT as u64);
}

/// The kernel tells its count with a datagram that came after a drop, although the headers are used again and again.
#[tokio::test]
async fn the_count_comes_with_the_datagrams_too() {
    let (ingress, address) = ingress(4_096).await;
    let fd = ingress.socket.as_raw_fd();
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("port");
    let drops = KernelDrops::without_table();
    let mut slots = Slots::new(SLOTS, 2_048);
    let mut received = 0;
    for _ in 0..3 {
        for _ in 0..50 {
            let _ = sender.send_to(&[7; 200], address).expect("sent");
        }
        while slots.receive(fd, &drops).is_ok() {
            received += slots.received.len() as u64;
        }
    }
    // One that comes through tells of those before it, and the first of them only that there is something to tell.
    for _ in 0..2 {
        let _ = sender.send_to(&[7; 200], address).expect("sent");
        slots.receive(fd, &drops).expect("received");
        received += slots.received.len() as u64;
    }
    assert_eq!(received + drops.total(), 3 * 50 + 2);
}

/// What does not fit is cut, by the kernel's word; a datagram that just fits is not.
#[tokio::test]
async fn truncation_is_the_kernels_word() {
    let (ingress, address) = ingress(65_536).await;
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("port");
    for size in [100, 101] {
        let _ = sender.send_to(&vec![1; size], address).expect("sent");
    }
    let mut slots = Slots::new(2, 100);
    slots.receive(ingress.socket.as_raw_fd(), &KernelDrops::without_table()).expect("received");
    let found: Vec<_> = slots.received.iter().map(|datagram| (datagram.length, datagram.truncated)).collect();
    assert_eq!(found, [(100, false), (100, true)]);
    assert_eq!(slots.received[0].peer, Some(sender.local_addr().expect("address")));
}

/// Senders of both families are told apart, over a socket for both.
#[tokio::test]
async fn addresses_of_both_families_are_read() {
    let Ok(socket) = UdpSocket::bind("[::]:0").await else { return };
    let port = socket.local_addr().expect("address").port();
    let v4 = std::net::UdpSocket::bind("127.0.0.1:0").expect("port");
    if v4.send_to(b"v4", ("127.0.0.1", port)).is_err() {
        return;
    }
    let mut slots = Slots::new(SLOTS, 100);
    slots.receive(socket.as_raw_fd(), &KernelDrops::without_table()).expect("received");
    let peer = slots.received[0].peer.expect("sender");
    assert_eq!(
        (peer.ip().to_canonical(), peer.port()),
        (v4.local_addr().expect("address").ip(), v4.local_addr().expect("address").port())
    );
}
