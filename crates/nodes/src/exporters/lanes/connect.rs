//! Connections as the settings of the client have them. Certificates and keys are read anew for every connection.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr as _;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use catchment_delivery::wire::connect::{Http1, host_and_port};
use catchment_delivery::wire::connection::{BoxError, Connect};
use http::Uri;
use hyper_util::rt::TokioIo;
use otel_arrow_dfe_otap::otap_grpc::client_settings::GrpcClientSettings;
use otel_arrow_dfe_otap::otap_grpc::proxy::ProxyConfig;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tonic::transport::Channel;
use tower_service::Service;

use super::config::HttpClient;
use super::tls;

mod tunnel;

use tunnel::{Io, Proxy};

/// Settings of sockets.
#[derive(Debug, Clone, Copy)]
struct Socket {
    nodelay: bool,
    keepalive: Option<Duration>,
    interval: Option<Duration>,
    retries: Option<u32>,
}

impl Socket {
    async fn connect(self, address: SocketAddr) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(self.nodelay)?;
        if let Some(time) = self.keepalive {
            let mut keepalive = TcpKeepalive::new().with_time(time);
            if let Some(interval) = self.interval {
                keepalive = keepalive.with_interval(interval);
            }
            if let Some(retries) = self.retries {
                keepalive = keepalive.with_retries(retries);
            }
            SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        }
        Ok(stream)
    }
}

async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(lookup_host((host, port)).await?.collect())
}

/// gRPC connections.
pub(super) struct GrpcConnect {
    settings: Arc<GrpcClientSettings>,
    socket: Socket,
    target: (String, u16),
    /// The engine's own connector finds the way through a proxy, or past it.
    has_proxy: bool,
}

impl GrpcConnect {
    /// # Errors
    /// If the address has no host.
    pub(super) fn new(settings: Arc<GrpcClientSettings>) -> io::Result<Self> {
        let uri = Uri::from_str(&settings.grpc_endpoint).map_err(io::Error::other)?;
        let proxy = settings.proxy.clone().map_or_else(ProxyConfig::from_env, ProxyConfig::merge_with_env);
        let socket = Socket {
            nodelay: settings.tcp_nodelay,
            keepalive: settings.tcp_keepalive,
            interval: settings.tcp_keepalive_interval,
            retries: settings.tcp_keepalive_retries,
        };
        Ok(Self { socket, target: host_and_port(&uri)?, has_proxy: proxy.has_proxy(), settings })
    }
}

impl Connect for GrpcConnect {
    type Body = tonic::body::Body;
    type Service = Channel;

    async fn resolve(&mut self) -> io::Result<Vec<SocketAddr>> {
        if self.has_proxy {
            // Names behind a proxy may be known to nobody but the proxy.
            return Ok(vec![(Ipv4Addr::UNSPECIFIED, self.target.1).into()]);
        }
        resolve(&self.target.0, self.target.1).await
    }

    async fn connect(&mut self, address: SocketAddr) -> Result<Channel, BoxError> {
        if self.has_proxy {
            return Ok(self.settings.connect_channel(None).await?);
        }
        let endpoint = self.settings.build_endpoint_with_tls().await?;
        Ok(endpoint.connect_with_connector(To { address, socket: self.socket }).await?)
    }
}

/// Connects to its address, whatever it is asked for.
struct To {
    address: SocketAddr,
    socket: Socket,
}

impl Service<Uri> for To {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connected = self.socket.connect(self.address);
        Box::pin(async move { Ok(TokioIo::new(connected.await?)) })
    }
}

/// HTTP/1.1 connections to one server, through a proxy or not.
pub(super) struct HttpConnect {
    client: Arc<HttpClient>,
    socket: Socket,
    target: Uri,
    host: (String, u16),
    proxy: Option<Proxy>,
}

impl HttpConnect {
    /// To the host of `target`.
    ///
    /// # Errors
    /// If it has none.
    pub(super) fn new(client: Arc<HttpClient>, target: Uri) -> io::Result<Self> {
        let settings = &client.settings;
        let socket = Socket {
            nodelay: settings.tcp_nodelay,
            keepalive: settings.tcp_keepalive,
            interval: settings.tcp_keepalive_interval,
            retries: None,
        };
        let proxy = Proxy::of(&target, client.proxy.clone());
        Ok(Self { socket, host: host_and_port(&target)?, proxy, target, client })
    }
}

impl Connect for HttpConnect {
    type Body = hyper::body::Incoming;
    type Service = Http1;

    async fn resolve(&mut self) -> io::Result<Vec<SocketAddr>> {
        let (host, port) = self.proxy.as_ref().map_or(&self.host, |proxy| &proxy.host);
        resolve(host, *port).await
    }

    async fn connect(&mut self, address: SocketAddr) -> Result<Http1, BoxError> {
        let mut stream: Box<dyn Io> = Box::new(self.socket.connect(address).await?);
        if let Some(proxy) = &self.proxy {
            stream = proxy.tunnel(stream, &self.target).await?;
        }
        if self.target.scheme_str() == Some("https") {
            stream = Box::new(tls::connect(self.client.settings.tls.as_ref(), &self.host.0, stream).await?);
        }
        Http1::over(stream).await
    }
}
