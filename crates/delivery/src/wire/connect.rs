//! Ways to make connections: tonic channels for gRPC, plain HTTP/1.1 for OTLP over HTTP, both with or without TLS.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

use super::connection::{BoxError, Connect, RequestBody};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Host and port of an address, with the port of its scheme if it names none.
///
/// # Errors
///
/// If it has no host.
pub fn host_and_port(uri: &Uri) -> io::Result<(String, u16)> {
    let host = uri.host().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{uri} has no host; right would be https://host:port"))
    })?;
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    Ok((host.trim_start_matches('[').trim_end_matches(']').to_owned(), port))
}

async fn resolve(target: &(String, u16)) -> io::Result<Vec<SocketAddr>> {
    Ok(lookup_host((target.0.as_str(), target.1)).await?.collect())
}

async fn tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Connections by a tonic endpoint, with its TLS, windows and keep-alive, but to one address of our choice each.
#[derive(Clone, Debug)]
pub struct ChannelConnect {
    endpoint: Endpoint,
    target: (String, u16),
}

impl ChannelConnect {
    /// From an endpoint with everything set.
    ///
    /// # Errors
    ///
    /// If its address has no host.
    pub fn new(endpoint: Endpoint) -> io::Result<Self> {
        let target = host_and_port(endpoint.uri())?;
        Ok(Self { endpoint, target })
    }
}

impl Connect for ChannelConnect {
    type Body = tonic::body::Body;
    type Service = Channel;

    async fn resolve(&mut self) -> io::Result<Vec<SocketAddr>> {
        resolve(&self.target).await
    }

    async fn connect(&mut self, address: SocketAddr) -> Result<Channel, BoxError> {
        Ok(self.endpoint.connect_with_connector(To(address)).await?)
    }
}

/// Connects to its address, whatever it is asked for.
struct To(SocketAddr);

impl Service<Uri> for To {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = self.0;
        Box::pin(async move { Ok(TokioIo::new(tcp(address).await?)) })
    }
}

/// HTTP/1.1 connections. Needs a tokio runtime to run them on.
#[derive(Clone)]
pub struct HttpConnect {
    target: (String, u16),
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl HttpConnect {
    /// To the host of an address; with TLS by `tls` if its scheme is https.
    ///
    /// # Errors
    ///
    /// If the address has no host, or is https and there is no `tls`.
    pub fn new(uri: &Uri, tls: Option<Arc<ClientConfig>>) -> io::Result<Self> {
        let target = host_and_port(uri)?;
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        let tls = match (uri.scheme_str(), tls) {
            (Some("http"), _) => None,
            (_, Some(config)) => {
                let name = ServerName::try_from(target.0.clone()).map_err(|error| invalid(error.to_string()))?;
                Some((TlsConnector::from(config), name))
            }
            (_, None) => return Err(invalid(format!("{uri} needs TLS settings"))),
        };
        Ok(Self { target, tls })
    }
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl Connect for HttpConnect {
    type Body = Incoming;
    type Service = Http1;

    async fn resolve(&mut self) -> io::Result<Vec<SocketAddr>> {
        resolve(&self.target).await
    }

    async fn connect(&mut self, address: SocketAddr) -> Result<Http1, BoxError> {
        let stream = tcp(address).await?;
        let io: Box<dyn Io> = match &self.tls {
            Some((connector, name)) => Box::new(connector.connect(name.clone(), stream).await?),
            None => Box::new(stream),
        };
        Http1::over(io).await
    }
}

/// An HTTP/1.1 connection.
pub struct Http1(SendRequest<RequestBody>);

impl Http1 {
    /// Over a stream that is connected to the server, whatever it took to get there. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// If the stream ends at once.
    pub async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<Self, BoxError> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends when the sender is dropped; what goes wrong comes out at the requests.
        drop(tokio::spawn(connection));
        Ok(Self(sender))
    }
}

impl Service<Request<RequestBody>> for Http1 {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<hyper::Result<Response<Incoming>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
