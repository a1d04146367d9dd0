//! What is done with a message, and the gRPC services.

use std::sync::Arc;

use catchment_columns::json;
use otel_arrow_dfe_pdata::encode::{encode_logs_otap_batch, encode_metrics_otap_batch};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{
    BatchArrowRecords, BatchStatus, StatusCode, arrow_logs_service_server::ArrowLogsService,
    arrow_metrics_service_server::ArrowMetricsService, arrow_traces_service_server::ArrowTracesService,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse, logs_service_server::LogsService,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse, metrics_service_server::MetricsService,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse, trace_service_server::TraceService,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::logs::v1::LogsData;
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{MetricsData, metric::Data};
use otel_arrow_dfe_pdata::{Consumer, OtapArrowRecords};
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::decode::{self, Signal};
use super::measured::is_undecodable;
use super::store::{Arrival, Keep, MetricsMessage, Store};

/// Answers of one stream that may wait for a client that does not read them.
const ANSWERS_QUEUED: usize = 64;

type Answers = ReceiverStream<Result<BatchStatus, Status>>;

/// All six services.
#[derive(Debug)]
pub(super) struct Receiver {
    store: Arc<Store>,
}

impl Receiver {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// Serves one stream of OTAP.
    fn stream(&self, signal: Signal, request: Request<Streaming<BatchArrowRecords>>) -> Response<Answers> {
        let (answers, receiver) = mpsc::channel(ANSWERS_QUEUED);
        let stream = Stream { signal, store: Arc::clone(&self.store), answers };
        drop(tokio::spawn(stream.serve(request.into_inner())));
        Response::new(ReceiverStream::new(receiver))
    }

    /// Takes an OTLP request with logs.
    pub(super) fn logs(&self, request: ExportLogsServiceRequest) -> Result<(), Status> {
        let resource_logs = request.resource_logs;
        let logs = resource_logs.iter().flat_map(|r| &r.scope_logs).map(|s| s.log_records.len() as u64).sum();
        let arrival = Arrival { logs, ..Arrival::default() };
        self.accept(arrival, || encode_logs_otap_batch(&LogsData { resource_logs }))
    }

    /// Takes an OTLP request with metrics.
    pub(super) fn metrics(&self, request: ExportMetricsServiceRequest) -> Result<(), Status> {
        let resource_metrics = request.resource_metrics;
        let metrics = resource_metrics.iter().flat_map(|r| &r.scope_metrics).flat_map(|s| &s.metrics);
        let points = metrics.filter_map(|metric| metric.data.as_ref()).map(|data| points(data) as u64).sum();
        let mut arrival = Arrival { points, ..Arrival::default() };
        let metrics = MetricsData { resource_metrics };
        if self.store.keep() == Keep::Metrics {
            arrival.metrics = Some(MetricsMessage::Otlp(metrics));
            self.store.add(arrival);
            return Ok(());
        }
        self.accept(arrival, || encode_metrics_otap_batch(&metrics))
    }

    /// Takes an OTLP request with spans.
    pub(super) fn traces(&self, request: ExportTraceServiceRequest) {
        let resource_spans = request.resource_spans;
        let spans = resource_spans.iter().flat_map(|r| &r.scope_spans).map(|s| s.spans.len() as u64).sum();
        // Spans have no JSON, so there is nothing to convert.
        self.store.add(Arrival { spans, ..Arrival::default() });
    }

    /// Takes the items of an OTLP request; `convert` is called only if they are recorded.
    fn accept<E: std::fmt::Display>(
        &self,
        mut arrival: Arrival,
        convert: impl FnOnce() -> Result<OtapArrowRecords, E>,
    ) -> Result<(), Status> {
        if self.store.keep() == Keep::Objects {
            let refuse = |reason: String| Status::invalid_argument(format!("cannot be recorded: {reason}"));
            let records = convert().map_err(|error| refuse(error.to_string()))?;
            json::objects(&records, |object| arrival.objects.push(object))
                .map_err(|error| refuse(error.to_string()))?;
        }
        self.store.add(arrival);
        Ok(())
    }
}

/// One stream of OTAP, for as long as it lasts.
struct Stream {
    signal: Signal,
    store: Arc<Store>,
    answers: mpsc::Sender<Result<BatchStatus, Status>>,
}

impl Stream {
    async fn serve(self, mut batches: Streaming<BatchArrowRecords>) {
        let mut consumer = Consumer::default();
        loop {
            let batch = match batches.message().await {
                Ok(Some(batch)) => batch,
                Ok(None) => return,
                Err(status) => {
                    if is_undecodable(&status) {
                        self.store.add_decode_error();
                    }
                    // Nobody hears it if the connection is what failed.
                    let _ = self.answers.send(Err(status)).await;
                    return;
                }
            };
            let batch_id = batch.batch_id;
            let (status_code, status_message) = self.accept(&mut consumer, batch);
            let answer = BatchStatus { batch_id, status_code: status_code.into(), status_message };
            let heard = self.answers.send(Ok(answer)).await.is_ok();
            // After an error the state of the stream is lost: the client has to open another.
            if !heard || status_code != StatusCode::Ok {
                return;
            }
        }
    }

    fn accept(&self, consumer: &mut Consumer, batch: BatchArrowRecords) -> (StatusCode, String) {
        match decode::otap(consumer, self.signal, batch, self.store.keep()) {
            Ok(arrival) => {
                self.store.add(arrival);
                (StatusCode::Ok, String::new())
            }
            Err(error) => {
                self.store.add_decode_error();
                (StatusCode::InvalidArgument, error.to_string())
            }
        }
    }
}

#[tonic::async_trait]
impl ArrowLogsService for Receiver {
    type ArrowLogsStream = Answers;

    async fn arrow_logs(
        &self,
        request: Request<Streaming<BatchArrowRecords>>,
    ) -> Result<Response<Self::ArrowLogsStream>, Status> {
        Ok(self.stream(Signal::Logs, request))
    }
}

#[tonic::async_trait]
impl ArrowMetricsService for Receiver {
    type ArrowMetricsStream = Answers;

    async fn arrow_metrics(
        &self,
        request: Request<Streaming<BatchArrowRecords>>,
    ) -> Result<Response<Self::ArrowMetricsStream>, Status> {
        Ok(self.stream(Signal::Metrics, request))
    }
}

#[tonic::async_trait]
impl ArrowTracesService for Receiver {
    type ArrowTracesStream = Answers;

    async fn arrow_traces(
        &self,
        request: Request<Streaming<BatchArrowRecords>>,
    ) -> Result<Response<Self::ArrowTracesStream>, Status> {
        Ok(self.stream(Signal::Traces, request))
    }
}

#[tonic::async_trait]
impl LogsService for Receiver {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        self.logs(request.into_inner())?;
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Receiver {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.metrics(request.into_inner())?;
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

fn points(data: &Data) -> usize {
    match data {
        Data::Gauge(gauge) => gauge.data_points.len(),
        Data::Sum(sum) => sum.data_points.len(),
        Data::Histogram(histogram) => histogram.data_points.len(),
        Data::ExponentialHistogram(histogram) => histogram.data_points.len(),
        Data::Summary(summary) => summary.data_points.len(),
    }
}

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.traces(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
