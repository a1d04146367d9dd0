//! Which connection a request takes.

use super::*;
use crate::wire::otlp_grpc::{GrpcSettings, OtlpGrpc};

async fn dead() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address")
}

/// All addresses are tried, from the lane's own on; a failure of all is no doubt at all.
#[tokio::test]
async fn all_addresses() {
    let address = serve(|mut exchange| async move {
        exchange.read().await;
        exchange.ok();
    })
    .await;
    let (one, two) = (dead().await, dead().await);
    for (addresses, first, expected, tried) in [
        (vec![one, two, address], 1, '+', vec![two, address]),
        (vec![one, two, address], 5, '+', vec![address]),
        (vec![one, two], 0, 'R', vec![one, two]),
        (vec![], 0, 'R', vec![]),
    ] {
        let listed = Listed::new(addresses);
        let seen = listed.tried.clone();
        let connection = Connection::new(listed, ConnectionSettings { first, ..ConnectionSettings::default() });
        let mut wire = OtlpGrpc::new(connection, Writer::default(), GrpcSettings::default()).expect("a wire");
        let outcome = attempt(&mut wire, 0..1).await;
        assert_eq!(class(&outcome), expected, "{outcome:?}");
        assert_eq!(*seen.lock().expect("a list"), tried);
    }
}

/// One connection serves many requests; an old one is changed between requests, for one to the next address.
#[tokio::test]
async fn rotation_by_age() {
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let mut addresses = Vec::new();
    for number in 0..2 {
        let counts = counts.clone();
        let address = serve(move |mut exchange| {
            counts[number].fetch_add(1, Ordering::Relaxed);
            async move {
                exchange.read().await;
                exchange.ok();
            }
        });
        addresses.push(address.await);
    }
    for (max_age, expected) in [(None, [6, 0]), (Some(Duration::ZERO), [9, 3])] {
        let settings = ConnectionSettings { max_age, ..ConnectionSettings::default() };
        let connection = Connection::new(Listed::new(addresses.clone()), settings);
        let mut wire = OtlpGrpc::new(connection, Writer::default(), GrpcSettings::default()).expect("a wire");
        for _ in 0..6 {
            assert_eq!(attempt(&mut wire, 0..1).await, Outcome::OK);
        }
        assert_eq!([0, 1].map(|number| counts[number].load(Ordering::Relaxed)), expected);
    }
}

/// A name is resolved to its addresses, and one that does not exist is no doubt.
#[tokio::test]
async fn names() {
    let mut connect = ChannelConnect::new(Endpoint::from_static("http://localhost:4317")).expect("a host");
    let addresses = connect.resolve().await.expect("localhost");
    assert!(addresses.iter().all(|address| address.port() == 4317 && address.ip().is_loopback()), "{addresses:?}");
    let mut connect = ChannelConnect::new(Endpoint::from_static("https://[::1]")).expect("a host");
    assert_eq!(connect.resolve().await.expect("an address"), ["[::1]:443".parse().expect("an address")]);
    let connect = ChannelConnect::new(Endpoint::from_static("http://no-such-host.invalid:1")).expect("a host");
    let connection = Connection::new(connect, ConnectionSettings::default());
    let mut wire = OtlpGrpc::new(connection, Writer::default(), GrpcSettings::default()).expect("a wire");
    assert_eq!(class(&attempt(&mut wire, 0..1).await), 'R');
}

/// A server that has gone between requests is noticed, at the latest by one request; from then on there is no doubt.
#[tokio::test]
async fn server_has_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
        let (request, respond) = connection.accept().await.expect("a request").expect("a request");
        let (head, body) = request.into_parts();
        let mut exchange = Exchange { connection: 0, head, body, respond, kill: Arc::default() };
        exchange.ok();
        connection.graceful_shutdown();
        while connection.accept().await.is_some() {}
    });
    let mut wire = OtlpGrpc::new(to(address), Writer::default(), GrpcSettings::default()).expect("a wire");
    assert_eq!(attempt(&mut wire, 0..1).await, Outcome::OK);
    server.await.expect("no panic");
    let outcome = attempt(&mut wire, 0..1).await;
    assert!(matches!(class(&outcome), 'R' | 'A'), "{outcome:?}");
    let outcome = attempt(&mut wire, 0..1).await;
    assert_eq!(class(&outcome), 'R', "{outcome:?}");
}
