//! TLS of clients by the engine's settings.

use std::io;
use std::sync::Arc;

use otel_arrow_dfe_config::tls::TlsClientConfig;
use otel_arrow_dfe_otap::crypto::selected_crypto_provider;
use otel_arrow_dfe_otap::tls_utils::{add_system_trust_anchors_to_root_cert_store, read_file_with_limit_async};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A TLS session with the server of that name over `stream`, with files read now.
///
/// # Errors
/// Names the setting whose file or text cannot be used, or says what failed with the server.
pub(super) async fn connect<S>(tls: Option<&TlsClientConfig>, host: &str, stream: S) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let defaults = TlsClientConfig::default();
    let tls = tls.unwrap_or(&defaults);
    let name = tls.server_name.as_deref().unwrap_or(host).to_owned();
    let name = ServerName::try_from(name).map_err(|error| invalid(format!("name of the server: {error}")))?;
    let connector = TlsConnector::from(Arc::new(config(tls).await?));
    connector.connect(name, stream).await
}

async fn config(tls: &TlsClientConfig) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if tls.include_system_ca_certs_pool.unwrap_or(true) {
        add_system_trust_anchors_to_root_cert_store(&mut roots).await?;
    }
    for pem in [material(tls.ca_file.as_deref(), None).await?, material(None, tls.ca_pem.as_deref()).await?] {
        let Some(pem) = pem else { continue };
        for authority in certificates("ca_file or ca_pem", &pem)? {
            roots.add(authority).map_err(|error| invalid(format!("ca_file or ca_pem: {error}")))?;
        }
    }
    let builder = ClientConfig::builder_with_provider(selected_crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let own = &tls.config;
    let certificate = material(own.cert_file.as_deref(), own.cert_pem.as_deref()).await?;
    let key = material(own.key_file.as_deref(), own.key_pem.as_deref()).await?;
    let Some((certificate, key)) = certificate.zip(key) else { return Ok(builder.with_no_client_auth()) };
    let chain = certificates("cert_file or cert_pem", &certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| invalid(format!("key_file or key_pem: {error}")))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| invalid(format!("certificate and key: {error}")))
}

/// The text, or what the file has now.
async fn material(file: Option<&std::path::Path>, pem: Option<&str>) -> io::Result<Option<Vec<u8>>> {
    match (pem.filter(|pem| !pem.trim().is_empty()), file) {
        (Some(pem), _) => Ok(Some(pem.as_bytes().to_vec())),
        (None, Some(file)) => Ok(Some(read_file_with_limit_async(file).await?)),
        (None, None) => Ok(None),
    }
}

fn certificates(key: &str, pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| invalid(format!("{key}: {error}")))?;
    if found.is_empty() {
        return Err(invalid(format!("{key}: no certificate, expected at least one in PEM")));
    }
    Ok(found)
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("tls: {message}"))
}
