//! Lanes with real wires, to servers as others write them.

use std::collections::HashSet;

use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchStatus;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::arrow_logs_service_server::{
    ArrowLogsService, ArrowLogsServiceServer,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::ExportLogsServiceResponse;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use tokio::sync::mpsc;
use tonic::codec::CompressionEncoding;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Status, Streaming, async_trait};

use super::*;
use crate::lane::{Counters, LaneSettings, PushError, RetrySettings, Verdict, lane};
use crate::wire::compress::Compression;
use crate::wire::otap::{Otap, OtapSettings};
use crate::wire::otlp_grpc::{GrpcSettings, OtlpGrpc};

/// What a server took, in order, and the random troubles it makes.
struct Troubled {
    taken: Arc<Mutex<Vec<u64>>>,
    random: Mutex<fastrand::Rng>,
}

impl Troubled {
    fn new(seed: u64) -> (Self, Arc<Mutex<Vec<u64>>>) {
        let taken = Arc::<Mutex<Vec<u64>>>::default();
        (Self { taken: taken.clone(), random: Mutex::new(fastrand::Rng::with_seed(seed)) }, taken)
    }

    fn draw(&self) -> u8 {
        self.random.lock().expect("random").u8(0..10)
    }

    fn take(&self, items: Vec<u64>) {
        self.taken.lock().expect("a list").extend(items);
    }
}

#[async_trait]
impl LogsService for Troubled {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<tonic::Response<ExportLogsServiceResponse>, Status> {
        let items = numbers_of(request.get_ref());
        match self.draw() {
            0 => return Err(Status::unavailable("away")),
            1 => return Err(Status::resource_exhausted("busy")),
            2 => {
                self.take(items);
                return Err(Status::deadline_exceeded("late"));
            }
            3 => {
                self.take(items);
                std::future::pending().await
            }
            _ => self.take(items),
        }
        Ok(tonic::Response::new(ExportLogsServiceResponse::default()))
    }
}

#[async_trait]
impl ArrowLogsService for Troubled {
    type ArrowLogsStream = futures_util::stream::BoxStream<'static, Result<BatchStatus, Status>>;

    async fn arrow_logs(
        &self,
        request: Request<Streaming<BatchArrowRecords>>,
    ) -> Result<tonic::Response<Self::ArrowLogsStream>, Status> {
        let draws: Vec<u8> = (0..20).map(|_| self.draw()).collect();
        let taken = self.taken.clone();
        let state = (request.into_inner(), draws, taken, HashSet::new(), false);
        let statuses =
            futures_util::stream::unfold(state, |(mut batches, mut draws, taken, mut ids, mut over)| async move {
                let batch = match batches.message().await {
                    Ok(Some(batch)) if !over => batch,
                    _ => return None,
                };
                assert!(ids.insert(batch.batch_id), "ids are unique on a stream");
                let payload = &batch.arrow_payloads[0];
                assert_eq!(payload.schema_id == "first", ids.len() == 1, "a stream begins with its schemas");
                let items = payload.record.chunks(8).map(|item| u64::from_be_bytes(item.try_into().expect("eight")));
                let draw = draws.pop().unwrap_or(2);
                if draw != 0 {
                    taken.lock().expect("a list").extend(items);
                }
                let status = match draw {
                    0 => Ok(BatchStatus { batch_id: batch.batch_id, status_code: 14, status_message: String::new() }),
                    1 => Err(Status::internal("broken")),
                    2 => Err(Status::ok("the end of this stream")),
                    3 => std::future::pending().await,
                    _ => Ok(BatchStatus { batch_id: batch.batch_id, ..BatchStatus::default() }),
                };
                over = status.is_err();
                Some((status, (batches, draws, taken, ids, over)))
            });
        Ok(tonic::Response::new(Box::pin(statuses)))
    }
}

fn settings() -> LaneSettings {
    let millis = Duration::from_millis;
    let retry = RetrySettings { initial: millis(1), max: millis(5), max_elapsed: None, ..RetrySettings::default() };
    LaneSettings { retry, attempt_timeout: millis(200), ..LaneSettings::default() }
}

/// Sends 60 payloads of 25 items through a lane; gives its verdicts and counters.
async fn deliver<W: Wire<Records>>(wire: W) -> (Vec<Verdict>, Counters) {
    let (verdicts, mut given) = mpsc::unbounded_channel();
    let (handle, lane) = lane(0, settings(), wire, verdicts);
    let feed = async {
        for token in 0..60_u64 {
            let mut load = Records((token * 25..token * 25 + 25).collect());
            while let Err(PushError::Full(back, _)) = handle.push(load, token) {
                load = back;
                handle.ready(load.bytes()).await;
            }
        }
        handle.close();
    };
    let (result, ()) = tokio::join!(lane.run(), feed);
    result.expect("no failure");
    let counters = handle.counters();
    drop(handle);
    let mut all = Vec::new();
    while let Some(resolved) = given.recv().await {
        assert_eq!(resolved.token, all.len() as u64, "verdicts come in order");
        all.push(resolved.verdict);
    }
    (all, counters)
}

fn check(verdicts: &[Verdict], counters: &Counters, taken: &Mutex<Vec<u64>>) {
    assert_eq!(verdicts.len(), 60);
    assert!(verdicts.iter().all(|verdict| verdict.refusal.is_none() && verdict.delivered == 25), "{verdicts:?}");
    let taken = taken.lock().expect("a list");
    let mut seen = HashSet::new();
    let first: Vec<u64> = taken.iter().copied().filter(|item| seen.insert(*item)).collect();
    assert_eq!(first, (0..1500).collect::<Vec<_>>(), "all, in the order of arrival");
    assert!((taken.len() - first.len()) as u64 <= counters.ambiguous, "{counters:?}");
    assert!(counters.retries > 0 && counters.balanced() && counters.held == 0, "{counters:?}");
}

async fn listen() -> (SocketAddr, TcpIncoming) {
    let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into()).expect("a port");
    (incoming.local_addr().expect("an address"), incoming)
}

/// OTLP to tonic's server, which refuses, loses answers, never answers, and finds requests too large.
#[tokio::test]
async fn otlp_to_tonic() {
    for (seed, compression) in [(1, Compression::None), (2, Compression::Gzip(6)), (3, Compression::Zstd(1))] {
        let (server, taken) = Troubled::new(seed);
        let (address, incoming) = listen().await;
        let service = LogsServiceServer::new(server)
            .max_decoding_message_size(1000)
            .accept_compressed(CompressionEncoding::Gzip)
            .accept_compressed(CompressionEncoding::Zstd);
        drop(tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming)));
        let settings = GrpcSettings { compression, ..GrpcSettings::default() };
        let wire = OtlpGrpc::new(to(address), Writer::default(), settings).expect("a wire");
        let (verdicts, counters) = deliver(wire).await;
        check(&verdicts, &counters, &taken);
        assert!(counters.splits > 0, "{counters:?}");
    }
}

/// OTAP to tonic's server, which refuses batches, and ends, breaks and forgets streams.
#[tokio::test]
async fn otap_to_tonic() {
    for seed in 0..3 {
        let (server, taken) = Troubled::new(seed);
        let (address, incoming) = listen().await;
        let service = ArrowLogsServiceServer::new(server);
        drop(tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming)));
        let settings = OtapSettings { close_timeout: Duration::from_millis(20), ..OtapSettings::default() };
        let wire = Otap::new(to(address), Writer::default(), settings).expect("a wire");
        let (verdicts, counters) = deliver(wire).await;
        check(&verdicts, &counters, &taken);
        assert!(counters.stream_resets > 0, "{counters:?}");
    }
}

/// OTAP to a tonic server that only knows OTLP: the lane changes over, and loses nothing.
#[tokio::test]
async fn otap_to_a_server_without() {
    let (server, taken) = Troubled::new(4);
    let (address, incoming) = listen().await;
    drop(tokio::spawn(Server::builder().add_service(LogsServiceServer::new(server)).serve_with_incoming(incoming)));
    let otap = Otap::new(to(address), Writer::default(), OtapSettings::default()).expect("a wire");
    let otlp = OtlpGrpc::new(to(address), Writer::default(), GrpcSettings::default()).expect("a wire");
    let (verdicts, counters) = deliver(crate::wire::switch::Switch::new(otap, otlp, Duration::from_secs(3600))).await;
    check(&verdicts, &counters, &taken);
    assert_eq!(counters.switches, 1);
}
