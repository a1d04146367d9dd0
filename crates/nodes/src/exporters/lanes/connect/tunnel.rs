//! Through a proxy by CONNECT (RFC 9110, section 9.3.6).

use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};

use catchment_delivery::wire::connect::host_and_port;
use catchment_delivery::wire::connection::BoxError;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use otel_arrow_dfe_config::tls::TlsClientConfig;
use otel_arrow_dfe_otap::otap_grpc::proxy::{ProxyConfig, SensitiveUrl};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

use crate::exporters::lanes::tls;

/// A stream of bytes.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// The proxy on the way to a server.
pub(super) struct Proxy {
    uri: Uri,
    /// Its host and port.
    pub(super) host: (String, u16),
    authorization: Option<HeaderValue>,
    tls: Option<TlsClientConfig>,
}

impl Proxy {
    /// The one that the settings and the environment have for this address; `None` if it is reached without.
    pub(super) fn of(target: &Uri, settings: Option<ProxyConfig>) -> Option<Self> {
        let settings = settings.map_or_else(ProxyConfig::from_env, ProxyConfig::merge_with_env);
        let url = |url: &Option<SensitiveUrl>| url.as_ref().map_or_else(String::new, |url| url.expose().to_owned());
        let found = Matcher::builder()
            .http(url(&settings.http_proxy))
            .https(url(&settings.https_proxy))
            .all(url(&settings.all_proxy))
            .no(settings.no_proxy.clone().unwrap_or_default())
            .build()
            .intercept(target)?;
        let host = host_and_port(found.uri()).ok()?;
        Some(Self { uri: found.uri().clone(), host, authorization: found.basic_auth().cloned(), tls: settings.tls })
    }

    /// Asks for a tunnel to the server, over a stream to the proxy.
    pub(super) async fn tunnel(&self, stream: Box<dyn Io>, target: &Uri) -> Result<Box<dyn Io>, BoxError> {
        let stream: Box<dyn Io> = if self.uri.scheme_str() == Some("https") {
            Box::new(tls::connect(self.tls.as_ref(), &self.host.0, stream).await?)
        } else {
            stream
        };
        let mut tunnel = Tunnel::new(self.uri.clone(), There(Some(TokioIo::new(stream))));
        if let Some(authorization) = &self.authorization {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        Ok(tunnel.call(target.clone()).await?.into_inner())
    }
}

/// A connection that is there already.
struct There(Option<TokioIo<Box<dyn Io>>>);

impl Service<Uri> for There {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}
