//! The servers of a scripted sink. They see frames, not calls: a script ends streams and connections in ways that a
//! framework for services does not offer. A sink without a script does not come here.

mod exchange;
mod grpc;
mod http;
mod items;
mod message;
mod otap;
mod wire;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpStream;

use super::SinkError;
use super::ledger::Ledger;
use super::serve::Listeners;
use super::services::Receiver;
use super::store::Store;
use exchange::Link;
use wire::{Line, Wire};

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    store: Arc<Store>,
    receiver: Receiver,
    ledger: Arc<Ledger>,
    connections: AtomicU64,
}

/// Serves until it is dropped. Both addresses of gRPC take OTLP as well as OTAP.
///
/// # Errors
///
/// [`SinkError::Serve`] if a listener fails.
pub(super) async fn serve(listeners: Listeners, store: Arc<Store>, ledger: Arc<Ledger>) -> Result<(), SinkError> {
    let receiver = Receiver::new(Arc::clone(&store));
    let shared = Arc::new(Shared { store, receiver, ledger, connections: AtomicU64::new(0) });
    tokio::select! {
        result = accept(listeners.otap, &shared, Kind::Grpc) => result,
        result = accept(listeners.otlp_grpc, &shared, Kind::Grpc) => result,
        result = accept(listeners.otlp_http, &shared, Kind::Http) => result,
    }
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Grpc,
    Http,
}

async fn accept(listener: Option<TcpListener>, shared: &Arc<Shared>, kind: Kind) -> Result<(), SinkError> {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    let failed = |error: std::io::Error| SinkError::Serve(error.to_string());
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    loop {
        let (stream, _) = listener.accept().await.map_err(failed)?;
        let id = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        drop(tokio::spawn(connection(stream, Arc::clone(shared), id, kind)));
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, id: u64, kind: Kind) {
    // A client that is gone already is noticed when it is read from.
    let _ = stream.set_nodelay(true);
    let (line, wire) = match kind {
        Kind::Grpc => Line::http2(stream),
        Kind::Http => Line::http1(stream),
    };
    let link = Link { shared, line: Arc::clone(&line), id };
    tokio::select! {
        () = serve_connection(link, wire, kind) => {}
        () = line.is_cut() => {}
    }
    line.end().await;
}

async fn serve_connection(link: Link, wire: Wire, kind: Kind) {
    match kind {
        Kind::Grpc => grpc::serve(link, wire).await,
        Kind::Http => http::serve(link, wire).await,
    }
}

#[cfg(test)]
mod tests;
