//! The one connection of a lane: made when needed, to one of the addresses of a name, changed when it is old or broken.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use tokio::time::{Instant, timeout};
use tower_service::Service;

use crate::outcome::Outcome;

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a request: what tonic's channels take.
pub type RequestBody = tonic::body::Body;

/// How connections are made. See [`connect`](super::connect) for those that need no more than an address.
pub trait Connect {
    /// The body of a response.
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Unpin;

    /// A connection, such as tonic's `Channel`. If it is dropped, it closes.
    type Service: Service<http::Request<RequestBody>, Response = http::Response<Self::Body>, Error: Into<BoxError>>;

    /// The addresses to choose from, in the order of the resolver. Asked before every connection.
    fn resolve(&mut self) -> impl Future<Output = io::Result<Vec<SocketAddr>>>;

    /// Connects to one of them.
    fn connect(&mut self, address: SocketAddr) -> impl Future<Output = Result<Self::Service, BoxError>>;
}

/// Settings of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Longest time to connect to one address, the look-up of the name included. Default 5 s.
    pub connect_timeout: Duration,
    /// Between requests, a connection that is older than between four fifths of this and all of it is changed for one to
    /// the next address, so that new servers behind a name get their share. Default: never.
    pub max_age: Option<Duration>,
    /// The address to begin with, modulo their number. The number of the lane spreads lanes over addresses.
    pub first: usize,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(5), max_age: None, first: 0 }
    }
}

/// A connection that is made when it is needed.
pub struct Connection<C: Connect> {
    connect: C,
    settings: ConnectionSettings,
    /// Which of the addresses is next, modulo their number.
    cursor: usize,
    open: Option<(C::Service, Option<Instant>)>,
    random: fastrand::Rng,
    made: u64,
}

impl<C: Connect> Connection<C> {
    /// No connection yet.
    pub fn new(connect: C, settings: ConnectionSettings) -> Self {
        let cursor = settings.first;
        Self { connect, settings, cursor, open: None, random: fastrand::Rng::new(), made: 0 }
    }

    /// Connections that were made so far.
    pub const fn made(&self) -> u64 {
        self.made
    }

    /// A connection is there and too old.
    pub fn expired(&self) -> bool {
        self.open.as_ref().is_some_and(|(_, end)| end.is_some_and(|end| end <= Instant::now()))
    }

    /// A connection that is ready for a request.
    ///
    /// # Errors
    ///
    /// As the outcome of the attempt, if none can be made to any of the addresses. Nothing has been sent then.
    pub async fn ready(&mut self) -> Result<&mut C::Service, Outcome> {
        if self.expired() {
            self.leave();
        }
        let usable = match &mut self.open {
            Some((service, _)) => poll_fn(|context| service.poll_ready(context)).await.is_ok(),
            None => false,
        };
        if !usable {
            self.open = None;
            self.make().await?;
        }
        match &mut self.open {
            Some((service, _)) => Ok(service),
            None => Err(Outcome::unsent("no connection")),
        }
    }

    /// Drops the connection; the next one goes to the next address.
    pub fn leave(&mut self) {
        self.open = None;
        self.cursor = self.cursor.wrapping_add(1);
    }

    async fn make(&mut self) -> Result<(), Outcome> {
        let limit = self.settings.connect_timeout;
        let addresses = match timeout(limit, self.connect.resolve()).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => addresses,
            Ok(Ok(_)) => return Err(Outcome::unsent("name has no address")),
            Ok(Err(error)) => return Err(Outcome::unsent(format!("name cannot be resolved: {error}"))),
            Err(_) => return Err(Outcome::unsent(format!("name is not resolved within {limit:?}"))),
        };
        let mut failure = Outcome::unsent("no address");
        for _ in 0..addresses.len() {
            let address = addresses[self.cursor % addresses.len()];
            let made = timeout(limit, async {
                let mut service = self.connect.connect(address).await?;
                poll_fn(|context| service.poll_ready(context)).await.map_err(Into::into)?;
                Ok::<_, BoxError>(service)
            });
            match made.await {
                Ok(Ok(service)) => {
                    let share = 0.8 + 0.2 * self.random.f64();
                    let end = self.settings.max_age.map(|age| Instant::now() + age.mul_f64(share));
                    self.open = Some((service, end));
                    self.made += 1;
                    return Ok(());
                }
                Ok(Err(error)) => failure = Outcome::unsent(format!("cannot connect to {address}: {}", chain(&*error))),
                Err(_) => failure = Outcome::unsent(format!("cannot connect to {address} within {limit:?}")),
            }
            self.cursor = self.cursor.wrapping_add(1);
        }
        Err(failure)
    }
}

/// What a lost request means: sent again in any case, ambiguous unless the error proves that the server has not begun
/// with it.
#[must_use]
pub fn lost(error: &(dyn Error + 'static)) -> Outcome {
    Outcome::Retry { delay: None, ambiguous: !unprocessed(error), message: format!("no answer: {}", chain(error)) }
}

/// The error says that the request was not processed: it never left, its stream was refused, or it is above the last one
/// that a server which goes away has taken (RFC 9113, sections 6.8 and 8.7).
fn unprocessed(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<tonic::ConnectError>()
            || error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled)
        {
            return true;
        }
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let away = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (away || refused);
        }
        next = error.source();
    }
    false
}

/// An error with its causes, each once.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    text
}
