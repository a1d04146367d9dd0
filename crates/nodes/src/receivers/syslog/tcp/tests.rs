use std::cell::Cell;
use std::io;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

use super::super::testing::{take_records, tcp, texts};
use super::*;
use crate::ingest::tcp::testing::{Authority, connect_from, is_closed, listener, until};
use crate::ingest::tcp::{Listen, accept};

/// A listener with a certificate of `authority`, which asks clients for one where `mutual`.
async fn server(authority: &Authority, mutual: bool) -> Rc<Tcp> {
    tcp(json!({"tcp": {"tls": authority.tls(mutual), "tls_client_subject": mutual}})).await
}

/// Fails a number of times before it listens.
struct Failing {
    inner: TcpListener,
    failures: Cell<u32>,
}

impl Listen for Failing {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        if let Some(left) = self.failures.get().checked_sub(1) {
            self.failures.set(left);
            // ECONNABORTED and EMFILE.
            return Err(io::Error::from_raw_os_error(if left == 0 { 103 } else { 24 }));
        }
        self.inner.accept().await
    }
}

/// Failed accepts are counted and tried again.
#[tokio::test]
async fn failed_accepts_do_not_end_the_listener() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({})).await;
            let (inner, address) = listener().await;
            let accepting = spawn_local(accept(Failing { inner, failures: Cell::new(2) }, Rc::clone(&tcp)));
            let mut stream = TcpStream::connect(address).await.expect("connected");
            stream.write_all(b"<34>a\n").await.expect("written");
            until(|| tcp.shared.intake.books().received == 1).await;
            assert_eq!(tcp.connections.counters.borrow().accept_errors, 2);
            tcp.shared.intake.stop.cancel();
            accepting.await.expect("ended");
        })
        .await;
}

/// Both limits hold, are counted apart, and let others in when a connection ends.
#[tokio::test]
async fn limits_of_connections_hold() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"tcp": {"max_connections": 3, "max_connections_per_source": 2}})).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            let connect = |from| connect_from(from, address);
            let first = connect("127.0.0.1").await;
            let _second = connect("127.0.0.1").await;
            assert!(is_closed(&mut connect("127.0.0.1").await).await);
            let _third = connect("127.0.0.2").await;
            until(|| tcp.connections.counters.borrow().open == 3).await;
            assert!(is_closed(&mut connect("127.0.0.3").await).await);
            {
                let counters = tcp.connections.counters.borrow();
                assert_eq!((counters.refused, counters.refused_of_source), (1, 1));
                assert_eq!((counters.accepted, counters.all_refused()), (3, 2));
            }
            drop(first);
            until(|| tcp.connections.counters.borrow().open == 2).await;
            let mut again = connect("127.0.0.1").await;
            again.write_all(b"<34>a\n").await.expect("written");
            until(|| tcp.shared.intake.books().received == 1).await;
            tcp.shared.intake.stop.cancel();
            accepting.await.expect("ended");
            assert!(tcp.connections.sources() == 0);
        })
        .await;
}

/// A connection that the kernel has accepted before the drain, and what it sent, are taken.
#[tokio::test]
async fn a_drain_takes_waiting_connections() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({})).await;
            let (listener, address) = listener().await;
            let mut stream = std::net::TcpStream::connect(address).expect("connected");
            io::Write::write_all(&mut stream, b"<34>a\n<34>b\n").expect("written");
            tcp.shared.intake.stop.cancel();
            accept(listener, Rc::clone(&tcp)).await;
            assert_eq!(tcp.shared.intake.books().received, 2);
        })
        .await;
}

/// Messages come through TLS; a connection that is closed in order, and one that is just cut, give all that is complete.
#[tokio::test]
async fn messages_come_through_tls() {
    LocalSet::new()
        .run_until(async {
            let authority = Authority::new();
            let tcp = server(&authority, false).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            let mut orderly = authority.connect(address, None).await.expect("connected");
            orderly.write_all(b"8 <34>a\nbc<34>line\n<34>rest").await.expect("written");
            orderly.shutdown().await.expect("closed");
            let mut cut = authority.connect(address, None).await.expect("connected");
            cut.write_all(b"<34>whole\n<34>half").await.expect("written");
            cut.flush().await.expect("sent");
            let (raw, _) = cut.into_inner();
            drop(raw);
            until(|| {
                let counters = tcp.connections.counters.borrow();
                counters.accepted == 2 && counters.open == 0
            })
            .await;
            let records = take_records(&tcp.shared);
            let found = texts(&records);
            let truncated = |end: &str| {
                let at = found.iter().position(|text| text.ends_with(end))?;
                Some(records[at]["attributes"]["syslog.truncated"] == json!(true))
            };
            assert_eq!(found.len(), 5, "{found:?}");
            assert_eq!(
                (truncated("rest"), truncated("whole"), truncated("half")),
                (Some(false), Some(false), Some(true))
            );
            assert_eq!(tcp.connections.counters.borrow().read_errors, 0);
            tcp.shared.intake.stop.cancel();
            accepting.await.expect("ended");
        })
        .await;
}

/// At a drain the plain text that TLS has decrypted already is taken too.
#[tokio::test]
async fn a_drain_takes_decrypted_text() {
    LocalSet::new()
        .run_until(async {
            let authority = Authority::new();
            let tcp = server(&authority, false).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            let mut stream = authority.connect(address, None).await.expect("connected");
            stream.write_all(b"<34>first\n").await.expect("written");
            until(|| tcp.shared.intake.books().received == 1).await;
            let lines: String = (0..2_000).map(|at| format!("<34>{at}\n")).collect();
            stream.write_all(lines.as_bytes()).await.expect("written");
            stream.flush().await.expect("sent");
            // Loopback: what was written is in the receiver's kernel buffer now.
            tcp.shared.intake.stop.cancel();
            accepting.await.expect("ended");
            assert_eq!(tcp.shared.intake.books().received, 2_001);
        })
        .await;
}

/// Who shows no certificate of the authority does not get in; who does is named in the records.
#[tokio::test]
async fn clients_show_who_they_are() {
    LocalSet::new()
        .run_until(async {
            let authority = Authority::new();
            let tcp = server(&authority, true).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            // With TLS 1.3 the client hears of it only when it reads.
            for identity in [None, Some(Authority::new().issue("stranger"))] {
                if let Ok(mut stream) = authority.connect(address, identity).await {
                    assert!(stream.read(&mut [0]).await.is_err());
                }
            }
            until(|| tcp.connections.counters.borrow().handshake_errors == 2).await;
            let mut stream = authority.connect(address, Some(authority.issue("device-1"))).await.expect("connected");
            stream.write_all(b"<34>a\n").await.expect("written");
            stream.flush().await.expect("sent");
            until(|| tcp.shared.intake.books().received == 1).await;
            let records = take_records(&tcp.shared);
            assert_eq!(records[0]["attributes"]["tls.client.subject"], json!("O=Example,CN=device-1"));
            tcp.shared.intake.stop.cancel();
            accepting.await.expect("ended");
        })
        .await;
}

/// A client that speaks plain text to a TLS port, and one that says nothing, are counted and stop nobody.
#[tokio::test]
async fn plain_text_and_silence_on_a_tls_port() {
    LocalSet::new()
        .run_until(async {
            let authority = Authority::new();
            let tcp = server(&authority, false).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            let mut silent = TcpStream::connect(address).await.expect("connected");
            let mut plain = TcpStream::connect(address).await.expect("connected");
            plain.write_all(b"<34>Oct 11 22:14:15 host su: plain text\n").await.expect("written");
            let mut stream = authority.connect(address, None).await.expect("connected");
            stream.write_all(b"<34>a\n").await.expect("written");
            stream.flush().await.expect("sent");
            until(|| tcp.shared.intake.books().received == 1).await;
            // An alert comes before the end.
            let _ = plain.read_to_end(&mut Vec::new()).await;
            assert!(is_closed(&mut silent).await, "after the time limit");
            assert_eq!(tcp.connections.counters.borrow().handshake_errors, 2);
            tcp.shared.intake.stop.cancel();
            accepting.await.expect("ended");
        })
        .await;
}
