//! OTLP over HTTP against a server that answers with bytes of our choice.

use http::Uri;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceResponse,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::*;
use crate::wire::compress::{Compression, decompress};
use crate::wire::connect::HttpConnect;
use crate::wire::otlp_http::{HttpSettings, OtlpHttp};

/// A request as it came.
#[derive(Clone, Debug)]
struct Seen {
    connection: usize,
    head: String,
    body: Vec<u8>,
}

/// What the server does with a request, and whether it closes the connection then.
#[derive(Clone)]
enum Reply {
    Bytes(Vec<u8>),
    ThenClose(Vec<u8>),
    /// Closes before it has read the body.
    CloseAtOnce,
}

type Requests = Arc<Mutex<Vec<Seen>>>;

async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>, usize)> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let body = bytes.split_off(head);
    let head = String::from_utf8(bytes).expect("text").to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().expect("a number");
    Some((head, body, length))
}

/// A server with one reply for each request, and the last again for the rest.
async fn serve_bytes(replies: Vec<Reply>) -> (Uri, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let uri = format!("http://{}/base", listener.local_addr().expect("an address")).parse().expect("an address");
    let requests = Requests::default();
    let list = requests.clone();
    tokio::spawn(async move {
        let mut count = 0;
        let mut connection = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            while let Some((head, mut body, length)) = request(&mut stream).await {
                let reply = replies[count.min(replies.len() - 1)].clone();
                count += 1;
                if matches!(reply, Reply::CloseAtOnce) {
                    break;
                }
                while body.len() < length && stream.read_buf(&mut body).await.is_ok_and(|read| read > 0) {}
                list.lock().expect("a list").push(Seen { connection, head, body });
                let (bytes, close) = match reply {
                    Reply::Bytes(bytes) => (bytes, false),
                    Reply::ThenClose(bytes) => (bytes, true),
                    Reply::CloseAtOnce => continue,
                };
                stream.write_all(&bytes).await.expect("written");
                if close {
                    break;
                }
            }
            connection += 1;
        }
    });
    (uri, requests)
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

const PROTOBUF: &str = "content-type: application/x-protobuf\r\n";

fn wire(uri: &Uri, change: impl FnOnce(&mut HttpSettings)) -> OtlpHttp<HttpConnect, Writer> {
    let mut settings = HttpSettings::endpoint(uri).expect("settings");
    change(&mut settings);
    let connect = HttpConnect::new(uri, None).expect("a host");
    OtlpHttp::new(Connection::new(connect, ConnectionSettings::default()), Writer::default(), settings).expect("a wire")
}

/// Path, headers and body of a request; one connection for all of them.
#[tokio::test]
async fn requests() {
    for compression in [Compression::None, Compression::Gzip(1), Compression::Zstd(1)] {
        let (uri, seen) = serve_bytes(vec![Reply::Bytes(answer("200 OK", PROTOBUF, b""))]).await;
        let mut wire = wire(&uri, |settings| {
            settings.compression = compression;
            settings.headers = map(&[("authorization", "Bearer x")]);
        });
        for _ in 0..3 {
            assert_eq!(attempt(&mut wire, 0..100).await, Outcome::OK);
        }
        let seen = seen.lock().expect("a list");
        assert_eq!(seen.iter().map(|seen| seen.connection).collect::<Vec<_>>(), [0, 0, 0]);
        let head = &seen[0].head;
        assert!(head.starts_with("post /base/v1/logs http/1.1\r\n"), "{head}");
        for line in ["content-type: application/x-protobuf", "authorization: bearer x", "host: 127.0.0.1:"] {
            assert!(head.contains(line), "{line} in {head}");
        }
        let encoding = compression.name();
        assert_eq!(encoding.is_some(), head.contains("content-encoding"), "{head}");
        let plain = decompress(encoding.unwrap_or("identity"), &seen[0].body, 1 << 20).expect("plain");
        let request = ExportLogsServiceRequest::decode(plain.as_slice()).expect("a request");
        assert_eq!(numbers_of(&request), (0..100).collect::<Vec<_>>());
    }
}

/// Answers of every kind, and what they mean; the wire goes on after each.
#[tokio::test]
async fn answers() {
    let partial_success = Some(ExportLogsPartialSuccess { rejected_log_records: 2, error_message: "some".to_owned() });
    let partial = ExportLogsServiceResponse { partial_success }.encode_to_vec();
    let ok = |headers: &str, body: &[u8]| Reply::Bytes(answer("200 OK", headers, body));
    let status = |status: &str, body: &[u8]| Reply::Bytes(answer(status, "", body));
    let zipped = {
        let mut compressor =
            crate::wire::compress::Compressor::new(Compression::Gzip(6)).expect("a level").expect("a compressor");
        compressor.compress(&partial, 0).expect("compressed")
    };
    let gzip = format!("{PROTOBUF}content-encoding: gzip\r\n");
    let zstd = format!("{PROTOBUF}content-encoding: zstd\r\n");
    let bomb = zstd::encode_all(&vec![0; 5_000_000][..], 1).expect("zstd");
    let mut cut = answer("200 OK", PROTOBUF, &partial);
    cut.truncate(cut.len() - 3);
    let table = vec![
        ("ok", '+', ok(PROTOBUF, b"")),
        ("ok without a type", '+', ok("", b"")),
        ("no content", '+', Reply::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())),
        ("partial success", 'W', ok(PROTOBUF, &partial)),
        ("compressed", 'W', ok(&gzip, &zipped)),
        ("compressed, damaged", 'W', ok(&gzip, b"junk")),
        ("compressed, grows", 'W', ok(&zstd, &bomb)),
        ("another type", 'W', ok("content-type: application/json\r\n", b"{}")),
        ("unreadable", 'W', ok(PROTOBUF, b"\x0a\xff")),
        ("large", 'W', ok(PROTOBUF, &[0; 50_000])),
        ("cut answer of a success", 'W', Reply::ThenClose(cut)),
        ("overload", 'R', Reply::Bytes(answer("429 Busy", "retry-after: 3\r\n", b""))),
        ("away", 'R', Reply::Bytes(answer("503 Away", "retry-after: 3\r\n", b""))),
        ("away, says a proxy", 'A', status("503 Away", b"")),
        ("bad gateway", 'A', status("502 Bad", b"")),
        ("gateway time-out", 'A', status("504 Late", b"")),
        ("time-out", 'P', status("408 Late", b"")),
        ("broken", 'P', status("500 Broken", b"x")),
        ("redirect", 'P', Reply::Bytes(answer("307 There", "location: http://elsewhere/\r\n", b""))),
        ("too large", 'O', status("413 Large", b"")),
        ("too large, says Go", 'O', status("400 Bad", b"http: request body too large")),
        ("bad", 'P', status("400 Bad", &[0; 100_000])),
        ("no answer", 'A', Reply::ThenClose(Vec::new())),
        ("half a head", 'A', Reply::ThenClose(b"HTTP/1.1 200 O".to_vec())),
        ("not HTTP", 'A', Reply::ThenClose(b"220 smtp ready\r\n".to_vec())),
        ("closed before the body", 'A', Reply::CloseAtOnce),
        ("ok again", '+', ok(PROTOBUF, b"")),
    ];
    let (uri, _) = serve_bytes(table.iter().map(|(_, _, reply)| reply.clone()).collect()).await;
    let mut wire = wire(&uri, |settings| settings.max_response_bytes = 20_000);
    for (name, expected, _) in table {
        let outcome = attempt(&mut wire, 0..20_000).await;
        assert_eq!(class(&outcome), expected, "{name}: {outcome:?}");
        match (name, outcome) {
            ("partial success" | "compressed", Outcome::Accepted { rejected, .. }) => assert_eq!(rejected, 2),
            ("overload" | "away", Outcome::Retry { delay, .. }) => assert_eq!(delay, Some(Duration::from_secs(3))),
            _ => {}
        }
    }
}

/// A server that closes an idle connection costs no attempt.
#[tokio::test]
async fn idle_connections_close() {
    let (uri, seen) = serve_bytes(vec![Reply::ThenClose(answer("200 OK", PROTOBUF, b""))]).await;
    let mut wire = wire(&uri, |_| {});
    for number in 0..5 {
        let mut outcome = attempt(&mut wire, 0..10).await;
        // The close may be under way while the next request is.
        while class(&outcome) == 'A' {
            outcome = attempt(&mut wire, 0..10).await;
        }
        assert_eq!(outcome, Outcome::OK);
        assert_eq!(seen.lock().expect("a list").len(), number + 1, "each is seen once");
    }
}

/// An address without a host, and https without TLS, are errors that say so.
#[test]
fn addresses() {
    assert!(HttpConnect::new(&Uri::from_static("/v1"), None).is_err());
    let error = HttpConnect::new(&Uri::from_static("https://collector"), None).map(|_| ()).expect_err("no TLS");
    assert!(error.to_string().contains("TLS"), "{error}");
    let settings = HttpSettings::endpoint(&Uri::from_static("https://collector:4318")).expect("settings");
    assert_eq!(settings.targets[1], Uri::from_static("https://collector:4318/v1/metrics"));
    assert!(HttpSettings::endpoint(&Uri::from_static("/v1")).is_err());
}

/// The same over TLS, to a server whose certificate is trusted, and not to one whose is not.
#[tokio::test]
async fn over_tls() {
    let provider = Arc::new(default_provider());
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a server");
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            while let Some((_, mut body, length)) = request(&mut stream).await {
                while body.len() < length && stream.read_buf(&mut body).await.is_ok_and(|read| read > 0) {}
                stream.write_all(&answer("200 OK", PROTOBUF, b"")).await.expect("written");
                stream.flush().await.expect("flushed");
            }
        }
    });
    let uri: Uri = format!("https://localhost:{port}").parse().expect("an address");
    for (trusted, expected) in [(true, '+'), (false, 'R')] {
        let mut roots = RootCertStore::empty();
        if trusted {
            roots.add(cert.der().clone()).expect("a root");
        }
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connect = HttpConnect::new(&uri, Some(Arc::new(client))).expect("a host");
        let settings = HttpSettings::endpoint(&uri).expect("settings");
        let connection = Connection::new(connect, ConnectionSettings::default());
        let mut wire = OtlpHttp::new(connection, Writer::default(), settings).expect("a wire");
        for _ in 0..2 {
            let outcome = attempt(&mut wire, 0..3).await;
            assert_eq!(class(&outcome), expected, "{outcome:?}");
        }
    }
}
