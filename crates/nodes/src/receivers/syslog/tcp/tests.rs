use std::cell::Cell;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::super::testing::{take_records, tcp, texts};
use super::*;

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        yield_now().await;
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
    let address = listener.local_addr().expect("address");
    (listener, address)
}

/// Whether the other side has closed the connection.
async fn is_closed(stream: &mut TcpStream) -> bool {
    !matches!(stream.read(&mut [0]).await, Ok(bytes) if bytes > 0)
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
            assert_eq!(tcp.shared.counters.borrow().accept_errors, 2);
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
            let connect = |from: &'static str| async move {
                let socket = tokio::net::TcpSocket::new_v4().expect("socket");
                socket.bind(format!("{from}:0").parse().expect("address")).expect("bound");
                socket.connect(address).await.expect("connected")
            };
            let first = connect("127.0.0.1").await;
            let _second = connect("127.0.0.1").await;
            assert!(is_closed(&mut connect("127.0.0.1").await).await);
            let _third = connect("127.0.0.2").await;
            until(|| tcp.shared.counters.borrow().connections_open == 3).await;
            assert!(is_closed(&mut connect("127.0.0.3").await).await);
            {
                let counters = tcp.shared.counters.borrow();
                assert_eq!((counters.connections_refused, counters.connections_refused_of_source), (1, 1));
                assert_eq!((counters.connections_accepted, counters.refused_connections()), (3, 2));
            }
            drop(first);
            until(|| tcp.shared.counters.borrow().connections_open == 2).await;
            let mut again = connect("127.0.0.1").await;
            again.write_all(b"<34>a\n").await.expect("written");
            until(|| tcp.shared.intake.books().received == 1).await;
            tcp.shared.intake.stop.cancel();
            accepting.await.expect("ended");
            assert!(tcp.open.borrow().is_empty());
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

/// A certificate authority and what it has issued.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("key");
        let certificate = params.self_signed(&key).expect("certificate").pem();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key in PEM.
    fn issue(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("name");
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, "Example");
        let key = KeyPair::generate().expect("key");
        (params.signed_by(&key, &self.issuer).expect("certificate").pem(), key.serialize_pem())
    }

    /// A listener with a certificate of this authority, which asks clients for one where `mutual`.
    async fn server(&self, mutual: bool) -> Rc<Tcp> {
        otel_arrow_dfe_otap::crypto::install_crypto_provider().ok();
        let (cert, key) = self.issue("localhost");
        let mut tls = json!({"cert_pem": cert, "key_pem": key, "handshake_timeout": "200ms"});
        if mutual {
            tls["client_ca_pem"] = Value::String(self.certificate.clone());
        }
        tcp(json!({"tcp": {"tls": tls, "tls_client_subject": mutual}})).await
    }

    async fn connect(
        &self,
        address: SocketAddr,
        identity: Option<(String, String)>,
    ) -> io::Result<TlsStream<TcpStream>> {
        use tokio_rustls::rustls::pki_types::pem::PemObject;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate.as_bytes()).expect("pem")).expect("root");
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some((cert, key)) => config
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(cert.as_bytes()).expect("pem")],
                    PrivateKeyDer::from(PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).expect("pem")),
                )
                .expect("identity"),
        };
        let stream = TcpStream::connect(address).await?;
        // What is written is to be in the receiver's kernel at once, not when it has acknowledged what came before.
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost").expect("name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

/// Messages come through TLS; a connection that is closed in order, and one that is just cut, give all that is complete.
#[tokio::test]
async fn messages_come_through_tls() {
    LocalSet::new()
        .run_until(async {
            let authority = Authority::new();
            let tcp = authority.server(false).await;
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
                let counters = tcp.shared.counters.borrow();
                counters.connections_accepted == 2 && counters.connections_open == 0
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
            assert_eq!(tcp.shared.counters.borrow().receive_errors, 0);
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
            let tcp = authority.server(false).await;
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
            let tcp = authority.server(true).await;
            let (listener, address) = listener().await;
            let accepting = spawn_local(accept(listener, Rc::clone(&tcp)));
            // With TLS 1.3 the client hears of it only when it reads.
            for identity in [None, Some(Authority::new().issue("stranger"))] {
                if let Ok(mut stream) = authority.connect(address, identity).await {
                    assert!(stream.read(&mut [0]).await.is_err());
                }
            }
            until(|| tcp.shared.counters.borrow().handshake_errors == 2).await;
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
            let tcp = authority.server(false).await;
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
            assert_eq!(tcp.shared.counters.borrow().handshake_errors, 2);
            tcp.shared.intake.stop.cancel();
            accepting.await.expect("ended");
        })
        .await;
}
