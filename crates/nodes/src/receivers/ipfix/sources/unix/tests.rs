use std::os::unix::net::UnixDatagram as Sender;

use serde_json::json;
use tempfile::TempDir;
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};

use super::*;
use crate::ingest::tcp::testing::until;
use crate::ingest::testing::Fake;

fn config(path: &Path) -> UnixConfig {
    let config: UnixConfig = config::parse(&json!({"path": path})).expect("valid");
    config.check().expect("valid");
    config
}

struct Running {
    folder: TempDir,
    intake: Rc<Intake<Fake>>,
    counters: Rc<RefCell<UnixCounters>>,
    taken: Rc<RefCell<Vec<Vec<u8>>>>,
    task: JoinHandle<()>,
}

impl Running {
    /// Each datagram is an item of the batch.
    fn start(max_messages: usize) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let ingress = UnixIngress::open(&config(&folder.path().join("socket"))).expect("open");
        let (intake, counters) = (Rc::new(Fake::intake(max_messages)), Rc::new(RefCell::default()));
        let taken = Rc::new(RefCell::new(Vec::new()));
        let (list, batch) = (Rc::clone(&taken), Rc::clone(&intake));
        let take = move |payload: &[u8], time_unix_nano| {
            assert!(time_unix_nano > 0);
            list.borrow_mut().push(payload.to_vec());
            Fake::push(&batch);
        };
        let task = spawn_local(receive(ingress, Rc::clone(&intake), Rc::clone(&counters), take));
        Self { folder, intake, counters, taken, task }
    }

    fn sender(&self) -> Sender {
        let sender = Sender::unbound().expect("socket");
        sender.connect(self.folder.path().join("socket")).expect("connected");
        sender.set_nonblocking(true).expect("set");
        sender
    }
}

/// Datagrams longer than UDP can carry come whole and in order, and the socket's file goes with the source.
#[tokio::test]
async fn long_datagrams_come_whole() {
    LocalSet::new()
        .run_until(async {
            let running = Running::start(8_192);
            let sender = running.sender();
            let long: Vec<u8> = (0..150_000u32).map(|at| (at % 251) as u8).collect();
            let _ = sender.send(&long).expect("sent");
            let _ = sender.send(b"short").expect("sent");
            until(|| running.taken.borrow().len() == 2).await;
            assert_eq!(*running.taken.borrow(), [long, b"short".to_vec()]);
            running.intake.stop.cancel();
            running.task.await.expect("ended");
            let counters = *running.counters.borrow();
            assert_eq!((counters.datagrams, counters.bytes, counters.truncated), (2, 150_005, 0));
            assert!(!running.folder.path().join("socket").exists());
        })
        .await;
}

/// While the batch is full nothing is read; at a drain what has arrived is taken.
#[tokio::test]
async fn a_full_batch_pushes_back_and_a_drain_takes_the_rest() {
    LocalSet::new()
        .run_until(async {
            let running = Running::start(1);
            let sender = running.sender();
            for at in 0..3u8 {
                let _ = sender.send(&[at]).expect("sent");
            }
            until(|| running.taken.borrow().len() == 1).await;
            for _ in 0..16 {
                yield_now().await;
            }
            assert_eq!(running.taken.borrow().len(), 1);
            running.intake.stop.cancel();
            while !running.task.is_finished() {
                yield_now().await;
                let _ = running.intake.take_job_for_test();
            }
            assert_eq!(*running.taken.borrow(), [[0], [1], [2]]);
        })
        .await;
}

/// The socket of a program that has ended is replaced; one in use, and a file, are left alone.
#[tokio::test]
async fn only_stale_sockets_are_replaced() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("socket");
    drop(Sender::bind(&path).expect("bound"));
    assert!(path.exists(), "left behind");
    let ingress = UnixIngress::open(&config(&path)).expect("replaced");
    let error = UnixIngress::open(&config(&path)).expect_err("in use");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(path.exists());
    // Somebody else's by now.
    std::fs::remove_file(&path).expect("removed");
    let other = folder.path().join("other");
    std::fs::write(&other, "text").expect("written");
    std::fs::rename(&other, &path).expect("renamed");
    drop(ingress);
    let error = UnixIngress::open(&config(&path)).expect_err("a file");
    assert_eq!((error.kind(), std::fs::read(&path).expect("there")), (ErrorKind::AlreadyExists, b"text".to_vec()));
}

/// Wrong settings are named.
#[test]
fn settings_are_checked() {
    for (value, expected) in [
        (json!({"path": ""}), "unix.path (bytes): 0"),
        (json!({"path": "x".repeat(108)}), "unix.path (bytes): 108"),
        (json!({}), "missing field `path`"),
    ] {
        let checked = config::parse::<UnixConfig>(&value).and_then(|config| config.check());
        let error = checked.expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
