//! The thread of a sink: its runtime and its servers.

use std::net::TcpListener;
use std::sync::Arc;

use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{
    arrow_logs_service_server::ArrowLogsServiceServer, arrow_metrics_service_server::ArrowMetricsServiceServer,
    arrow_traces_service_server::ArrowTracesServiceServer,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::logs_service_server::LogsServiceServer;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::metrics_service_server::MetricsServiceServer;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::trace::v1::trace_service_server::TraceServiceServer;
use tokio::sync::oneshot;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::ledger::Ledger;
use super::measured::Measured;
use super::raw::Raw;
use super::services::Receiver;
use super::store::Store;
use super::{MAX_MESSAGE_BYTES, SinkError, http, scripted};

/// HTTP/2 window: large, so that the sink is never what holds an exporter back.
const WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// Sockets that listen already, not blocking.
pub(super) struct Listeners {
    pub(super) otap: Option<TcpListener>,
    pub(super) otlp_grpc: Option<TcpListener>,
    pub(super) otlp_http: Option<TcpListener>,
}

/// What is done with requests.
#[derive(Debug)]
pub(super) enum Mode {
    /// They are decoded and counted.
    Decoding,
    /// They are counted.
    Raw,
    /// What a script says.
    Scripted(Arc<Ledger>),
}

/// A generated server around the receiver, with our compressions and limits, measured.
macro_rules! service {
    ($server:ident, $store:expr) => {
        Measured::new(
            $server::new(Receiver::new(Arc::clone($store)))
                .accept_compressed(CompressionEncoding::Zstd)
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            Arc::clone($store),
        )
    };
}

/// What takes the place of a generated server in a raw sink, measured.
macro_rules! raw {
    ($protocol:ident, $server:ident, $store:expr) => {
        Measured::new(Raw::<$server<()>>::$protocol(Arc::clone($store)), Arc::clone($store))
    };
}

/// Serves until `stopped` is sent or dropped; connections that are open then are cut.
pub(super) fn run(
    listeners: Listeners,
    store: &Arc<Store>,
    mode: Mode,
    stopped: oneshot::Receiver<()>,
) -> Result<(), SinkError> {
    let failed = |error: &dyn std::fmt::Display| SinkError::Serve(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
    let (otap, otlp, bodies) = match mode {
        Mode::Scripted(ledger) => {
            return runtime.block_on(async {
                tokio::select! {
                    _ = stopped => Ok(()),
                    result = scripted::serve(listeners, Arc::clone(store), ledger) => result,
                }
            });
        }
        Mode::Decoding => {
            let otap = Routes::new(service!(ArrowLogsServiceServer, store))
                .add_service(service!(ArrowMetricsServiceServer, store))
                .add_service(service!(ArrowTracesServiceServer, store));
            let otlp = Routes::new(service!(LogsServiceServer, store))
                .add_service(service!(MetricsServiceServer, store))
                .add_service(service!(TraceServiceServer, store));
            (otap, otlp, http::Bodies::Decoded)
        }
        Mode::Raw => {
            let otap = Routes::new(raw!(otap, ArrowLogsServiceServer, store))
                .add_service(raw!(otap, ArrowMetricsServiceServer, store))
                .add_service(raw!(otap, ArrowTracesServiceServer, store));
            let otlp = Routes::new(raw!(otlp, LogsServiceServer, store))
                .add_service(raw!(otlp, MetricsServiceServer, store))
                .add_service(raw!(otlp, TraceServiceServer, store));
            (otap, otlp, http::Bodies::Counted)
        }
    };
    runtime.block_on(async {
        tokio::select! {
            _ = stopped => Ok(()),
            result = serve(listeners.otap, otap) => result,
            result = serve(listeners.otlp_grpc, otlp) => result,
            result = http::serve(listeners.otlp_http, store, bodies) => result,
        }
    })
}

/// Ends only if serving fails.
async fn serve(listener: Option<TcpListener>, routes: Routes) -> Result<(), SinkError> {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    let failed = |error: &dyn std::fmt::Display| SinkError::Serve(error.to_string());
    let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| failed(&error))?;
    Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .add_routes(routes)
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
        .await
        .map_err(|error| failed(&error))
}
