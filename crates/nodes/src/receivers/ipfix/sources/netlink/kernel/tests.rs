use std::cell::RefCell;
use std::rc::Rc;

use netlink_packet_core::NlaBuffer;
use proptest::prelude::*;
use serde_json::json;
use tokio::task::{LocalSet, spawn_local};

use super::super::walk::tests::encode;
use super::super::{NetlinkCounters, receive_from};
use super::*;
use crate::config;
use crate::ingest::now;
use crate::ingest::tcp::testing::until;
use crate::ingest::testing::Fake;

fn source(family: &str, group: &str, receive_buffer: usize) -> (KernelSource, NetlinkConfig) {
    let value = json!({"family": family, "group": group, "receive_buffer": receive_buffer, "retry_interval": "10ms"});
    let config: NetlinkConfig = config::parse(&value).expect("valid");
    config.check().expect("valid");
    (KernelSource::new(&config), config)
}

/// The group that every kernel has: the controller tells of changes there.
async fn joined(receive_buffer: usize) -> KernelSource {
    let (mut source, _) = source("nlctrl", "notify", receive_buffer);
    let joined = source.join().await.expect("joined");
    assert_eq!(joined.family, CONTROLLER);
    assert!(joined.receive_buffer >= receive_buffer);
    source
}

/// Family and group are found by name and joined; nothing comes, and they stay.
#[tokio::test]
async fn a_group_is_joined_by_name() {
    let mut source = joined(65_536).await;
    source.look().await.expect("there still");
    source.ids.0 += 1;
    let error = source.look().await.expect_err("another number").to_string();
    assert!(error.contains("`nlctrl` was registered anew"), "{error}");
    let first = source.join().await.expect("joined again");
    assert_eq!(source.join().await.expect("and again"), first);
}

/// What is missing is named, with what would be there.
#[tokio::test]
async fn missing_names_are_told() {
    let (mut family, _) = source("no_such_family", "ipfix", 65_536);
    let error = family.join().await.expect_err("missing").to_string();
    assert!(error.contains("no generic netlink family `no_such_family`") && error.contains("`ipfix`"), "{error}");
    let (mut group, _) = source("nlctrl", "ipfix", 65_536);
    let error = group.join().await.expect_err("missing").to_string();
    assert!(error.contains("`nlctrl` has no multicast group `ipfix`, expected one of: notify"), "{error}");
}

/// A missing family is looked for again and again, and the source ends when it is told to.
#[tokio::test]
async fn a_missing_family_is_looked_for_again() {
    LocalSet::new()
        .run_until(async {
            let (source, config) = source("no_such_family", "ipfix", 65_536);
            let (intake, counters) = (Rc::new(Fake::intake(8_192)), Rc::new(RefCell::<NetlinkCounters>::default()));
            let take = |_: &[u8], _| unreachable!("nothing to take");
            let task = spawn_local(receive_from(source, config, Rc::clone(&intake), Rc::clone(&counters), take));
            until(|| counters.borrow().failures >= 3).await;
            assert!(!counters.borrow().joined && counters.borrow().joins == 0);
            intake.stop.cancel();
            task.await.expect("ended");
        })
        .await;
}

/// Datagrams of a megabyte come whole; those that are not from the kernel are told apart. Where tests may not send to
/// others there is nothing to see.
#[tokio::test]
async fn datagrams_of_any_length() {
    let socket = open().expect("socket");
    SockRef::from(socket.socket_ref()).set_recv_buffer_size(4 * 1024 * 1024).expect("buffer");
    let mut address = SocketAddr::new(0, 0);
    socket.socket_ref().get_address(&mut address).expect("address");
    let sender = open().expect("socket");
    SockRef::from(sender.socket_ref()).set_send_buffer_size(4 * 1024 * 1024).expect("buffer");
    let large = encode(99, &vec![7; 1_000_000]);
    let to = SocketAddr::new(address.port_number(), 0);
    if let Err(error) = sender.socket_ref().send_to(&large, &to, 0) {
        eprintln!("skipped: cannot send a megabyte to a netlink socket of one's own: {error}");
        return;
    }
    let mut buffer = Vec::new();
    let received = receive(&socket, &mut buffer, MAX_DATAGRAM_BYTES).await.expect("received");
    assert_eq!((received.truncated, received.from_kernel, buffer.len()), (false, false, large.len()));
    let _ = sender.socket_ref().send_to(&large, &to, 0).expect("sent");
    let received = receive(&socket, &mut buffer, 1_000).await.expect("received");
    assert!(received.truncated);
}

/// What the receive buffer cannot hold is an overrun, and does not end the stream.
#[tokio::test]
async fn overruns_are_errors_of_one_read() {
    let source = joined(4_096).await;
    let socket = source.socket.as_ref().expect("joined");
    let sender = open().expect("socket");
    // To the group, as the kernel would.
    let to = SocketAddr::new(0, 1 << (source.ids.1 - 1));
    for _ in 0..16 {
        if let Err(error) = sender.socket_ref().send_to(&encode(99, &[7; 3_000]), &to, 0) {
            eprintln!("skipped: cannot send to a netlink group: {error}");
            return;
        }
    }
    let (mut buffer, mut overruns, mut datagrams) = (Vec::new(), 0, 0);
    let mut next = Some(receive(socket, &mut buffer, MAX_DATAGRAM_BYTES).await);
    while let Some(received) = next {
        match received {
            Ok(_) => datagrams += 1,
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(Errno::ENOBUFS as i32), "{error}");
                overruns += 1;
            }
        }
        next = now(receive(socket, &mut buffer, MAX_DATAGRAM_BYTES)).await;
    }
    assert!(overruns == 1 && (1..16).contains(&datagrams), "{overruns} overruns, {datagrams} datagrams");
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let attribute = DefaultNla::new(kind, value.to_vec());
    let mut bytes = vec![0; attribute.buffer_len()];
    attribute.emit(&mut bytes);
    bytes
}

/// An answer with a group, and with attributes that nobody knows yet.
fn answer() -> Vec<u8> {
    let group = [
        attribute(ATTRIBUTE_GROUP_ID, &14u32.to_ne_bytes()),
        attribute(ATTRIBUTE_GROUP_NAME, b"ipfix\0"),
        attribute(900, b"later"),
    ];
    let nameless = attribute(ATTRIBUTE_GROUP_ID, &15u32.to_ne_bytes());
    let groups = [attribute(1, &group.concat()), attribute(2, &nameless)];
    let attributes = [
        attribute(ATTRIBUTE_FAMILY_NAME, b"sonic_stel\0"),
        attribute(ATTRIBUTE_FAMILY_ID, &33u16.to_ne_bytes()),
        attribute(901, b"later"),
        attribute(ATTRIBUTE_GROUPS, &groups.concat()),
    ];
    encode(CONTROLLER, &attributes.concat())
}

/// Attributes of kernels to come are passed over; errors are told from missing families.
#[test]
fn answers_are_read() {
    let found = Family { id: 33, groups: vec![("ipfix".to_owned(), 14)] };
    assert_eq!(family(&answer()), Ok(Some(found)));
    let error = |code: i32| {
        let mut answer = encode(ERROR, &[0; 16]);
        answer[NETLINK_HEADER_BYTES..NETLINK_HEADER_BYTES + 4].copy_from_slice(&code.to_ne_bytes());
        family(&answer)
    };
    assert_eq!(error(-(Errno::ENOENT as i32)), Ok(None));
    assert!(error(-(Errno::EPERM as i32)).expect_err("refused").contains("EPERM"));
    assert!(error(i32::MIN).is_err() && error(0).is_err());
    for (answer, expected) in [
        (Vec::new(), "no netlink message"),
        (encode(77, b""), "type 77"),
        (encode(CONTROLLER, b""), "without the number"),
        (encode(CONTROLLER, &[3, 0, 1, 0]), ""),
    ] {
        assert!(family(&answer).expect_err("unreadable").contains(expected));
    }
}

/// The request is one message with the name in it.
#[test]
fn a_request_is_whole() {
    let request = request("sonic_stel");
    let (kind, whole) = message(&request).expect("a message");
    assert_eq!((kind, whole.len(), whole[16], whole[17]), (CONTROLLER, request.len(), GET_FAMILY, CONTROLLER_VERSION));
    let name = NlaBuffer::new_checked(&request[20..]).expect("an attribute");
    assert_eq!((name.kind(), name.value()), (ATTRIBUTE_FAMILY_NAME, &b"sonic_stel\0"[..]));
}

proptest! {
    /// Damaged answers are errors, or other answers.
    #[test]
    fn any_answer_is_read(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut answer = answer();
        let at = at.index(answer.len());
        answer[at] = byte;
        answer.truncate(cut.index(answer.len() + 1));
        if let Ok(Some(family)) = family(&answer) {
            prop_assert!(family.groups.len() <= 2);
        }
    }
}
