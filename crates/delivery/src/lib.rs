//! Delivery in order, with nothing lost unseen.
//!
//! A payload goes to a [lane](lane::lane) by its [key](route::Router). A lane keeps an ordered queue, bounded by
//! payloads and bytes, puts its payloads together to requests, and has one request in flight on a connection of its own:
//! retries happen in place, so what the server takes, it takes in the order of arrival. Every payload comes with a token,
//! and every token gets exactly one [`Verdict`](lane::Verdict).
//!
//! - [`route`]: from a payload to its lane;
//! - [`payload`]: what a lane has to know of payloads, and how they are encoded;
//! - [`encode`]: record batches as requests of OTLP, and as messages of an OTAP stream;
//! - [`load`]: record batches and requests of OTLP as payloads;
//! - [`lane`]: queue, batching, retry, bookkeeping, drain;
//! - [`outcome`]: what an answer means, by the specifications of OTLP and OTAP;
//! - [`wire`]: OTLP over gRPC and HTTP, OTAP streams.
//!
//! The crate knows record batches, tokio and the wire, and not the engine.
//!
//! ```no_run
//! use std::num::NonZeroUsize;
//!
//! use catchment_delivery::lane::{LaneSettings, OnFull, PushError, RetryBudget, lane};
//! use catchment_delivery::payload::{Encode, Payload};
//! use catchment_delivery::route::{Facts, LaneKey, Router};
//! use catchment_delivery::wire::connect::ChannelConnect;
//! use catchment_delivery::wire::connection::{Connection, ConnectionSettings};
//! use catchment_delivery::wire::otlp_grpc::{GrpcSettings, OtlpGrpc};
//! use tokio::sync::mpsc;
//! use tonic::transport::Endpoint;
//!
//! /// Runs on a `LocalSet`. `inbox` gives payloads with their tokens.
//! async fn export<P, E>(mut inbox: mpsc::Receiver<(P, u64)>, encoder: E) -> Result<(), Box<dyn std::error::Error>>
//! where
//!     P: Payload + Facts + 'static,
//!     E: Encode<P> + Clone + 'static,
//! {
//!     let (verdicts, mut given) = mpsc::unbounded_channel();
//!     let budget = RetryBudget::new(10.0, 5);
//!     let (mut handles, mut tasks) = (Vec::new(), tokio::task::JoinSet::new());
//!     for number in 0..4 {
//!         let connect = ChannelConnect::new(Endpoint::from_static("http://collector:4317"))?;
//!         let connection = Connection::new(connect, ConnectionSettings { first: number, ..Default::default() });
//!         let wire = OtlpGrpc::new(connection, encoder.clone(), GrpcSettings::default())?;
//!         let settings = LaneSettings { on_full: OnFull::Block, ..LaneSettings::default() };
//!         let (handle, lane) = lane(number, settings, wire, verdicts.clone());
//!         handles.push(handle);
//!         tasks.spawn_local(lane.budgeted(budget.clone()).run());
//!     }
//!     let lanes = NonZeroUsize::new(handles.len()).ok_or("no lanes")?;
//!     let mut router = Router::new(LaneKey::Peer, lanes);
//!     // A payload whose lane is full; nothing is taken from the inbox meanwhile, verdicts and ends of lanes are.
//!     let mut waiting: Option<(usize, P, u64)> = None;
//!     loop {
//!         let room = async {
//!             match &waiting {
//!                 Some((lane, payload, _)) => handles[*lane].ready(payload.bytes()).await,
//!                 None => std::future::pending().await,
//!             }
//!         };
//!         tokio::select! {
//!             Some(resolved) = given.recv() => println!("{}: {:?}", resolved.token, resolved.verdict),
//!             Some(ended) = tasks.join_next() => return Ok(ended??),
//!             () = room => {}
//!             Some((payload, token)) = inbox.recv(), if waiting.is_none() => {
//!                 waiting = Some((router.lane(&payload), payload, token));
//!             }
//!             else => return Ok(()),
//!         }
//!         if let Some((lane, payload, token)) = waiting.take() {
//!             match handles[lane].push(payload, token) {
//!                 Ok(()) => {}
//!                 Err(PushError::Full(payload, token)) => waiting = Some((lane, payload, token)),
//!                 Err(PushError::Closed(..)) => return Err("a lane has ended".into()),
//!             }
//!         }
//!     }
//! }
//! ```

pub mod encode;
pub mod lane;
pub mod load;
pub mod outcome;
pub mod payload;
pub mod route;
pub mod signal;
pub mod wire;
