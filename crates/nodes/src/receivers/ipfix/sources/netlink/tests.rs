use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::walk::tests::encode;
use super::*;
use crate::ingest::tcp::testing::until;
use crate::ingest::testing::Fake;

const FAMILY: u16 = 30;

/// What a kernel does, as the test has it.
#[derive(Default)]
struct Kernel {
    /// There is such a family.
    present: bool,
    datagrams: VecDeque<io::Result<(Vec<u8>, Received)>>,
    looks: u32,
}

#[derive(Clone, Default)]
struct Scripted {
    kernel: Rc<RefCell<Kernel>>,
    arrived: Rc<Notify>,
}

impl Scripted {
    fn check(&self) -> Result<(), JoinError> {
        if self.kernel.borrow().present {
            return Ok(());
        }
        Err(JoinError::NoFamily { family: "sonic_stel".to_owned(), group: "ipfix".to_owned() })
    }

    fn push(&self, datagram: io::Result<(Vec<u8>, Received)>) {
        self.kernel.borrow_mut().datagrams.push_back(datagram);
        self.arrived.notify_one();
    }

    fn send(&self, datagram: Vec<u8>) {
        self.push(Ok((datagram, Received { truncated: false, from_kernel: true })));
    }
}

impl PayloadSource for Scripted {
    async fn join(&mut self) -> Result<Joined, JoinError> {
        self.check().map(|()| Joined { family: FAMILY, receive_buffer: 1_000 })
    }

    async fn look(&mut self) -> Result<(), JoinError> {
        self.kernel.borrow_mut().looks += 1;
        self.check()
    }

    async fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<Received> {
        loop {
            let next = self.kernel.borrow_mut().datagrams.pop_front();
            match next {
                Some(Ok((datagram, received))) => {
                    *buffer = datagram;
                    return Ok(received);
                }
                Some(Err(error)) => return Err(error),
                None => self.arrived.notified().await,
            }
        }
    }
}

struct Running {
    source: Scripted,
    intake: Rc<Intake<Fake>>,
    counters: Rc<RefCell<NetlinkCounters>>,
    taken: Rc<RefCell<Vec<Vec<u8>>>>,
    task: JoinHandle<()>,
}

impl Running {
    /// Each payload is an item of the batch.
    fn start(present: bool, max_messages: usize) -> Self {
        let config: NetlinkConfig = config::parse(&json!({"retry_interval": "10ms"})).expect("valid");
        let source = Scripted::default();
        source.kernel.borrow_mut().present = present;
        let (intake, counters) = (Rc::new(Fake::intake(max_messages)), Rc::new(RefCell::default()));
        let taken = Rc::new(RefCell::new(Vec::new()));
        let (list, batch) = (Rc::clone(&taken), Rc::clone(&intake));
        let take = move |payload: &[u8], time_unix_nano| {
            assert!(time_unix_nano > 0 && !batch.is_full());
            list.borrow_mut().push(payload.to_vec());
            Fake::push(&batch);
        };
        let task = spawn_local(receive_from(source.clone(), config, Rc::clone(&intake), Rc::clone(&counters), take));
        Self { source, intake, counters, taken, task }
    }

    fn counters(&self) -> NetlinkCounters {
        *self.counters.borrow()
    }

    async fn end(self) -> NetlinkCounters {
        self.intake.stop.cancel();
        self.task.await.expect("ended");
        *self.counters.borrow()
    }
}

/// All payloads of a datagram are handed over; what is no payload is counted by kind and ends nothing.
#[tokio::test]
async fn payloads_are_handed_over() {
    LocalSet::new()
        .run_until(async {
            let running = Running::start(true, 8_192);
            let source = &running.source;
            source.send([encode(FAMILY, b"one"), encode(3, b"other"), encode(FAMILY, b"two")].concat());
            source.push(Err(io::Error::from_raw_os_error(Errno::ENOBUFS as i32)));
            source.send([encode(FAMILY, b"three"), vec![1, 2, 3]].concat());
            source.push(Ok((encode(FAMILY, b"cut"), Received { truncated: true, from_kernel: true })));
            source.push(Ok((encode(FAMILY, b"forged"), Received { truncated: false, from_kernel: false })));
            source.push(Err(io::Error::from_raw_os_error(Errno::ENOMEM as i32)));
            source.send(encode(FAMILY, b"four"));
            until(|| running.taken.borrow().len() == 4).await;
            assert_eq!(*running.taken.borrow(), [&b"one"[..], b"two", b"three", b"four"]);
            let counters = running.end().await;
            assert_eq!((counters.datagrams, counters.payloads, counters.bytes), (5, 4, 15));
            assert_eq!((counters.overruns, counters.truncated, counters.damaged), (1, 1, 1));
            assert_eq!((counters.foreign, counters.receive_errors, counters.failures), (2, 1, 0));
        })
        .await;
}

/// A family that is missing is looked for until it is there; one that vanishes is missed and found again.
#[tokio::test]
async fn a_family_may_come_and_go() {
    LocalSet::new()
        .run_until(async {
            let running = Running::start(false, 8_192);
            until(|| running.counters().failures >= 2).await;
            assert!(!running.counters().joined);
            running.source.kernel.borrow_mut().present = true;
            until(|| running.counters().joined).await;
            running.source.send(encode(FAMILY, b"one"));
            until(|| running.taken.borrow().len() == 1).await;
            let (failures, looks) = (running.counters().failures, running.source.kernel.borrow().looks);
            until(|| running.source.kernel.borrow().looks > looks + 1).await;
            assert_eq!((running.counters().failures, running.counters().joins), (failures, 1), "looked after only");
            running.source.kernel.borrow_mut().present = false;
            until(|| running.counters().failures > failures && !running.counters().joined).await;
            running.source.kernel.borrow_mut().present = true;
            until(|| running.counters().joins == 2).await;
            running.source.send(encode(FAMILY, b"two"));
            until(|| running.taken.borrow().len() == 2).await;
            let _ = running.end().await;
        })
        .await;
}

/// A full batch stops the source, within a datagram too.
#[tokio::test]
async fn a_full_batch_stops_the_source() {
    LocalSet::new()
        .run_until(async {
            let running = Running::start(true, 1);
            running.source.send([encode(FAMILY, b"one"), encode(FAMILY, b"two")].concat());
            running.source.send(encode(FAMILY, b"three"));
            for expected in 1..=3 {
                until(|| running.taken.borrow().len() == expected).await;
                for _ in 0..16 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(running.taken.borrow().len(), expected);
                let _ = running.intake.take_job_for_test();
            }
            let _ = running.end().await;
        })
        .await;
}

/// At a drain, what the kernel holds is taken, up to the size of its buffer.
#[tokio::test]
async fn a_drain_takes_what_is_there() {
    LocalSet::new()
        .run_until(async {
            let running = Running::start(true, 8_192);
            until(|| running.counters().joined).await;
            for _ in 0..100 {
                running.source.send(encode(FAMILY, &[7; 80]));
            }
            let (taken, source) = (Rc::clone(&running.taken), running.source.clone());
            let counters = running.end().await;
            // Ten of a hundred bytes are a buffer full.
            assert_eq!((counters.datagrams, taken.borrow().len()), (10, 10));
            assert_eq!(source.kernel.borrow().datagrams.len(), 90);
        })
        .await;
}

/// The names are SONiC's unless others are given; wrong settings are named.
#[test]
fn settings_are_checked() {
    let config: NetlinkConfig = config::parse(&Value::Null).expect("valid");
    config.check().expect("valid");
    assert_eq!((config.family.as_str(), config.group.as_str()), ("sonic_stel", "ipfix"));
    assert_eq!((config.receive_buffer, config.retry_interval), (4_194_304, Duration::from_secs(10)));
    for (value, expected) in [
        (json!({"family": ""}), "netlink.family (bytes): 0"),
        (json!({"group": "sixteen_letters_"}), "netlink.group (bytes): 16"),
        (json!({"receive_buffer": 1}), "netlink.receive_buffer: 1"),
        (json!({"retry_interval": "1ms"}), "netlink.retry_interval (ms): 1"),
        (json!({"groups": "a"}), "unknown field"),
    ] {
        let checked = config::parse::<NetlinkConfig>(&value).and_then(|config| config.check());
        let error = checked.expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
