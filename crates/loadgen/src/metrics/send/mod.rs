//! Sending, and checking the answers.

mod grpc;
mod http;

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::time::Instant;

use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceResponse;
use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};

use super::{MetricsError, MetricsProtocol, Request, Requests, SentMetrics};
use crate::traffic::Pace;

/// Sends all requests from this thread, at most so many points a second, and waits for all answers.
///
/// # Errors
///
/// [`MetricsError::Connection`] if a connection cannot be made or breaks, [`MetricsError::Refused`] with the server's text
/// for any answer but that all points were accepted. Sending stops at the first error; requests that are on their way on
/// other connections may be accepted all the same.
pub fn send_metrics(
    target: SocketAddr,
    requests: &Requests,
    points_per_second: Option<NonZeroU64>,
) -> Result<SentMetrics, MetricsError> {
    let run = Rc::new(Run::new(points_per_second));
    let sent = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Connection(error.to_string()))
        .and_then(|runtime| LocalSet::new().block_on(&runtime, send(target, requests, &run)));
    let accepted = run.accepted();
    match sent {
        Ok(()) => Ok(accepted),
        Err(Failure::Connection(reason)) => Err(MetricsError::Connection { target, accepted, reason }),
        Err(Failure::Refused(answer)) => Err(MetricsError::Refused { target, accepted, answer }),
    }
}

/// Why sending ends early.
#[derive(Debug)]
enum Failure {
    Connection(String),
    Refused(String),
}

impl Failure {
    fn connection(error: impl std::fmt::Display) -> Self {
        Self::Connection(error.to_string())
    }
}

/// Requests of all connections that may be between the oldest without an answer and the next, for each connection. A
/// receiver may serve one connection before another; points should not come much later than those with later times.
const AHEAD_OF_OLDEST: u64 = 2;

/// Requests that are still to be sent.
type Queue = Rc<RefCell<VecDeque<Request>>>;

/// What all connections of a run have in common.
#[derive(Debug)]
struct Run {
    pace: Pace,
    /// When all connections are there.
    began: RefCell<Instant>,
    /// Points that were handed to a connection.
    offered: RefCell<u64>,
    accepted: RefCell<SentMetrics>,
    turns: RefCell<Turns>,
    /// Told when a turn has ended.
    turn_ended: Notify,
}

/// Requests that were handed to connections, by their order.
#[derive(Debug, Default)]
struct Turns {
    next: u64,
    unanswered: BTreeSet<u64>,
}

impl Run {
    fn new(points_per_second: Option<NonZeroU64>) -> Self {
        Self {
            pace: Pace::new(points_per_second),
            began: RefCell::new(Instant::now()),
            offered: RefCell::new(0),
            accepted: RefCell::default(),
            turns: RefCell::default(),
            turn_ended: Notify::new(),
        }
    }

    /// The next request of the queue of several connections and its turn, when those before it have come far enough.
    async fn next_in_turn(&self, queue: &Queue, connections: u64) -> Option<(u64, Request)> {
        let request = self.next(queue).await?;
        let turn = {
            let mut turns = self.turns.borrow_mut();
            let turn = turns.next;
            turns.next += 1;
            let _ = turns.unanswered.insert(turn);
            turn
        };
        loop {
            let ended = self.turn_ended.notified();
            let oldest = self.turns.borrow().unanswered.first().copied().unwrap_or(turn);
            if turn - oldest < connections * AHEAD_OF_OLDEST {
                return Some((turn, request));
            }
            ended.await;
        }
    }

    /// Counts the request of a turn that was accepted as a whole.
    fn accept_turn(&self, turn: u64, request: &Request) {
        self.accept(request);
        let _ = self.turns.borrow_mut().unanswered.remove(&turn);
        self.turn_ended.notify_waiters();
    }

    /// The next request of a queue, when its time has come.
    async fn next(&self, queue: &Queue) -> Option<Request> {
        let request = queue.borrow_mut().pop_front()?;
        let before = self.offered.replace_with(|offered| *offered + request.points);
        let wait = self.pace.wait(before, self.began.borrow().elapsed());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Some(request)
    }

    /// Counts a request that was accepted as a whole.
    fn accept(&self, request: &Request) {
        let mut accepted = self.accepted.borrow_mut();
        accepted.requests += 1;
        accepted.points += request.points;
        accepted.bytes += request.body.len() as u64;
        accepted.seconds = self.began.borrow().elapsed().as_secs_f64();
    }

    fn accepted(&self) -> SentMetrics {
        *self.accepted.borrow()
    }
}

async fn send(target: SocketAddr, requests: &Requests, run: &Rc<Run>) -> Result<(), Failure> {
    let options = &requests.options;
    let connections = options.connections.get();
    let shared: Queue = Rc::new(RefCell::new(requests.all.iter().cloned().collect()));
    let mut tasks = JoinSet::new();
    match options.protocol {
        MetricsProtocol::OtlpHttp => {
            for connection in connect(connections, || http::connect(target)).await? {
                drop(tasks.spawn_local(http::send(
                    connection,
                    target,
                    Rc::clone(run),
                    Rc::clone(&shared),
                    connections as u64,
                )));
            }
        }
        MetricsProtocol::OtlpGrpc => {
            for channel in connect(connections, || grpc::connect(target)).await? {
                drop(tasks.spawn_local(grpc::send(channel, Rc::clone(run), Rc::clone(&shared), connections as u64)));
            }
        }
        MetricsProtocol::Otap => {
            for (number, channel) in connect(connections, || grpc::connect(target)).await?.into_iter().enumerate() {
                let own = requests.all.iter().skip(number).step_by(connections).cloned().collect();
                let own: Queue = Rc::new(RefCell::new(own));
                drop(tasks.spawn_local(grpc::stream(channel, options.in_flight.get(), Rc::clone(run), own)));
            }
        }
    }
    let _ = run.began.replace(Instant::now());
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap_or_else(|error| Err(Failure::connection(error)))?;
    }
    Ok(())
}

/// Makes all connections before the first is used.
async fn connect<C, F>(connections: usize, mut make: impl FnMut() -> F) -> Result<Vec<C>, Failure>
where
    F: Future<Output = Result<C, Failure>>,
{
    let mut all = Vec::with_capacity(connections);
    for _ in 0..connections {
        all.push(make().await?);
    }
    Ok(all)
}

/// What an answer of OTLP says beyond its status.
fn check(response: ExportMetricsServiceResponse) -> Result<(), Failure> {
    match response.partial_success {
        Some(partial) if partial.rejected_data_points != 0 => {
            let rejected = partial.rejected_data_points;
            Err(Failure::Refused(format!("{rejected} points were rejected: {}", partial.error_message)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever is too far ahead of the oldest request without an answer waits for it.
    #[test]
    fn in_turn() {
        let request = || Request { body: bytes::Bytes::new(), points: 1 };
        let queue: Queue = Rc::new(RefCell::new((0..10).map(|_| request()).collect()));
        let run = Run::new(None);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
            for turn in 0..4 {
                assert_eq!(run.next_in_turn(&queue, 2).await.unwrap().0, turn);
            }
            let mut fifth = Box::pin(run.next_in_turn(&queue, 2));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(fifth.as_mut().poll(&mut context).is_pending());
            run.accept_turn(2, &request());
            assert!(fifth.as_mut().poll(&mut context).is_pending());
            run.accept_turn(0, &request());
            assert_eq!(fifth.await.unwrap().0, 4);
        });
        assert_eq!((run.accepted().points, queue.borrow().len()), (2, 5));
    }
}
