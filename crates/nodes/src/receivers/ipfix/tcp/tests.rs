use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::{LocalSet, spawn_local};

use super::testing::{STREAM, config, tcp};
use super::*;
use crate::ingest::tcp::accept;
use crate::ingest::tcp::testing::{Authority, connect_from, is_closed, listener, until};

/// Both limits of connections hold, and let others in when a connection ends.
#[tokio::test]
async fn limits_of_connections_hold() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({"max_connections": 2, "max_connections_per_source": 1}), 8_192).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            let first = connect_from("127.0.0.1", address).await;
            assert!(is_closed(&mut connect_from("127.0.0.1", address).await).await);
            let _second = connect_from("127.0.0.2", address).await;
            until(|| tcp.connections.counters.borrow().open == 2).await;
            assert!(is_closed(&mut connect_from("127.0.0.3", address).await).await);
            {
                let counters = tcp.connections.counters.borrow();
                assert_eq!((counters.refused, counters.refused_of_source, counters.accepted), (1, 1, 2));
            }
            drop(first);
            until(|| tcp.connections.counters.borrow().open == 1).await;
            let mut again = connect_from("127.0.0.1", address).await;
            again.write_all(STREAM).await.expect("written");
            until(|| tcp.sink.bytes().len() == STREAM.len()).await;
            tcp.sink.intake.stop.cancel();
            accepting.await.expect("ended");
            assert_eq!((tcp.connections.sources(), tcp.sink.closed.borrow().len()), (0, 3));
        })
        .await;
}

/// At a drain, what the kernel has accepted and received is taken.
#[tokio::test]
async fn a_drain_takes_what_has_arrived() {
    LocalSet::new()
        .run_until(async {
            let tcp = tcp(json!({}), 8_192).await;
            let (listener, address) = listener().await;
            let mut exporter = std::net::TcpStream::connect(address).expect("connected");
            std::io::Write::write_all(&mut exporter, STREAM).expect("written");
            tcp.sink.intake.stop.cancel();
            accept(listener, Rc::clone(&tcp)).await;
            assert_eq!(tcp.sink.bytes(), STREAM);
        })
        .await;
}

/// Messages come through TLS; a client that says nothing, or no TLS, is counted and stops nobody.
#[tokio::test]
async fn messages_come_through_tls() {
    LocalSet::new()
        .run_until(async {
            let authority = Authority::new();
            let tcp = tcp(json!({"tls": authority.tls(false)}), 8_192).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            let mut silent = connect_from("127.0.0.1", address).await;
            let mut plain = connect_from("127.0.0.1", address).await;
            plain.write_all(STREAM).await.expect("written");
            let mut exporter = authority.connect(address, None).await.expect("connected");
            for piece in STREAM.chunks(700) {
                exporter.write_all(piece).await.expect("written");
                exporter.flush().await.expect("sent");
            }
            until(|| tcp.sink.bytes().len() == STREAM.len()).await;
            let _ = plain.read_to_end(&mut Vec::new()).await;
            assert!(is_closed(&mut silent).await, "after the time limit");
            assert_eq!(tcp.sink.bytes(), STREAM);
            assert_eq!(tcp.connections.counters.borrow().handshake_errors, 2);
            tcp.sink.intake.stop.cancel();
            accepting.await.expect("ended");
        })
        .await;
}

/// With an authority for clients, only those with a certificate of it get in.
#[tokio::test]
async fn exporters_show_who_they_are() {
    LocalSet::new()
        .run_until(async {
            let authority = Authority::new();
            let tcp = tcp(json!({"tls": authority.tls(true)}), 8_192).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            // With TLS 1.3 the client hears of it only when it reads.
            for identity in [None, Some(Authority::new().issue("stranger"))] {
                if let Ok(mut stream) = authority.connect(address, identity).await {
                    assert!(stream.read(&mut [0]).await.is_err());
                }
            }
            until(|| tcp.connections.counters.borrow().handshake_errors == 2).await;
            assert_eq!(tcp.sink.closed.borrow().len(), 0, "no session ever began");
            let identity = Some(authority.issue("exporter-1"));
            let mut exporter = authority.connect(address, identity).await.expect("connected");
            exporter.write_all(STREAM).await.expect("written");
            exporter.shutdown().await.expect("closed");
            until(|| tcp.sink.closed.borrow().len() == 1).await;
            assert_eq!(tcp.sink.bytes(), STREAM);
            tcp.sink.intake.stop.cancel();
            accepting.await.expect("ended");
        })
        .await;
}

/// Wrong settings are named with what would be right.
#[test]
fn wrong_settings_are_explained() {
    for (more, key, right) in [
        (json!({"max_connections": 0}), "tcp.max_connections", "1 to 1000000"),
        (json!({"max_connections_per_source": 0}), "tcp.max_connections_per_source", "1 to 1000000"),
        (json!({"idle_timeout": "1ms"}), "tcp.idle_timeout", "10 to"),
        (json!({"max_buffered_bytes": 1}), "tcp.max_buffered_bytes", "1024 to"),
        (json!({"tls": {"cert_file": "c", "key_fil": "k"}}), "tls", "`key_file`"),
        (json!({"tls": {"key_file": "k"}}), "config.tcp.tls", "neither of `cert_file` and `cert_pem`"),
        (json!({"framing": "auto"}), "framing", "unknown field"),
    ] {
        let mut value = json!({"listening_addr": "127.0.0.1:0"});
        for (name, more) in more.as_object().expect("map") {
            value[name] = more.clone();
        }
        let checked = config::parse::<TcpConfig>(&value).and_then(|config| config.check());
        let error = checked.expect_err("refused").to_string();
        assert!(error.contains(key) && error.contains(right), "{key}: {error}");
    }
    let config = config(json!({}));
    assert_eq!((config.max_connections, config.max_buffered_bytes), (1_024, 67_108_864));
}
