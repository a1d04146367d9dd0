//! What the tests of receivers share: a certificate authority, clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::yield_now;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Waits for a condition while the other tasks run.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        yield_now().await;
    }
}

/// A listener on a port of its own.
pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
    let address = listener.local_addr().expect("address");
    (listener, address)
}

/// A connection to `address` from the address `from`.
pub(crate) async fn connect_from(from: &str, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("socket");
    socket.bind(format!("{from}:0").parse().expect("address")).expect("bound");
    socket.connect(address).await.expect("connected")
}

/// Whether the other side has closed the connection.
pub(crate) async fn is_closed(stream: &mut TcpStream) -> bool {
    !matches!(stream.read(&mut [0]).await, Ok(bytes) if bytes > 0)
}

/// A certificate authority and what it has issued.
pub(crate) struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        otel_arrow_dfe_otap::crypto::install_crypto_provider().ok();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("key");
        let certificate = params.self_signed(&key).expect("certificate").pem();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key in PEM.
    pub(crate) fn issue(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("name");
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, "Example");
        let key = KeyPair::generate().expect("key");
        (params.signed_by(&key, &self.issuer).expect("certificate").pem(), key.serialize_pem())
    }

    /// Settings of a listener with a certificate of this authority, which asks clients for one where `mutual`.
    pub(crate) fn tls(&self, mutual: bool) -> Value {
        let (cert, key) = self.issue("localhost");
        let mut tls = json!({"cert_pem": cert, "key_pem": key, "handshake_timeout": "200ms"});
        if mutual {
            tls["client_ca_pem"] = Value::String(self.certificate.clone());
        }
        tls
    }

    /// Connects as a client that trusts this authority.
    pub(crate) async fn connect(
        &self,
        address: SocketAddr,
        identity: Option<(String, String)>,
    ) -> io::Result<TlsStream<TcpStream>> {
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
