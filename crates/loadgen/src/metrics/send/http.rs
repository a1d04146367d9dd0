//! OTLP over HTTP/1.1.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Response, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message as _;
use tokio::net::TcpStream;

use super::{Failure, Queue, Run, check};
use crate::protobuf::{CONTENT_TYPE_PROTOBUF, METRICS_PATH, RpcStatus};

pub(super) async fn connect(target: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(target).await.map_err(Failure::connection)?;
    stream.set_nodelay(true).map_err(Failure::connection)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(Failure::connection)?;
    // What breaks the connection is told by the request that meets it.
    drop(tokio::task::spawn_local(connection));
    Ok(sender)
}

/// Sends one request after the other until there are none.
pub(super) async fn send(
    mut connection: SendRequest<Full<Bytes>>,
    target: SocketAddr,
    run: Rc<Run>,
    queue: Queue,
    connections: u64,
) -> Result<(), Failure> {
    while let Some((turn, request)) = run.next_in_turn(&queue, connections).await {
        connection.ready().await.map_err(Failure::connection)?;
        let post = hyper::Request::post(METRICS_PATH)
            .header(HOST, target.to_string())
            .header(CONTENT_TYPE, CONTENT_TYPE_PROTOBUF)
            .body(Full::new(request.body.clone()))
            .map_err(Failure::connection)?;
        let response = connection.send_request(post).await.map_err(Failure::connection)?;
        accepted(response).await?;
        run.accept_turn(turn, &request);
    }
    Ok(())
}

async fn accepted(response: Response<Incoming>) -> Result<(), Failure> {
    let status = response.status();
    let body = response.into_body().collect().await.map_err(Failure::connection)?.to_bytes();
    if status == StatusCode::OK {
        let response = ExportMetricsServiceResponse::decode(body);
        return check(
            response.map_err(|error| Failure::Refused(format!("{status} with a body that is none: {error}")))?,
        );
    }
    let text = match RpcStatus::decode(body.clone()) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => String::from_utf8_lossy(&body).into_owned(),
    };
    Err(Failure::Refused(format!("{status}: {text}")))
}
