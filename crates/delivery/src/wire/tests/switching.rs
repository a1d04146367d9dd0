//! OTAP with OTLP to fall back on.

use super::*;
use crate::wire::otap::{Otap, OtapSettings};
use crate::wire::otlp_grpc::{GrpcSettings, OtlpGrpc};
use crate::wire::switch::Switch;

type Both = Switch<Otap<Listed, Writer>, OtlpGrpc<Listed, Writer>>;

fn both(address: SocketAddr, probe_after: Duration) -> Both {
    let otap = Otap::new(to(address), Writer::default(), OtapSettings::default()).expect("a wire");
    let otlp = OtlpGrpc::new(to(address), Writer::default(), GrpcSettings::default()).expect("a wire");
    Switch::new(otap, otlp, probe_after)
}

/// A server that answers OTAP with this gRPC status until it is told to know it, and always knows OTLP. Returns what was
/// asked for: 'a' for OTAP, 'l' for OTLP.
async fn server(status: &'static str) -> (SocketAddr, Arc<Mutex<String>>, Arc<AtomicUsize>) {
    let (asked, knows) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicUsize::new(0)));
    let (list, switch) = (asked.clone(), knows.clone());
    let address = serve(move |mut exchange| {
        let (list, known) = (list.clone(), switch.load(Ordering::Relaxed) > 0);
        async move {
            let otap = exchange.head.uri.path() == Signal::Logs.otap_path();
            list.lock().expect("a list").push(if otap { 'a' } else { 'l' });
            if !otap {
                exchange.read().await;
                return exchange.ok();
            }
            if !known {
                return exchange.answer(200, &[("grpc-status", status)], &[], None);
            }
            let mut buffer = Vec::new();
            exchange.batch(&mut buffer).await;
            let status = otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchStatus {
                batch_id: 1,
                ..Default::default()
            };
            exchange.grpc(&status.encode_to_vec(), &[("grpc-status", "0")]);
        }
    })
    .await;
    (address, asked, knows)
}

/// A server that does not know OTAP gets OTLP at once, and is asked again after a while; when it knows OTAP, it gets that.
#[tokio::test]
async fn falls_back_and_returns() {
    let (address, asked, knows) = server("12").await;
    let mut wire = both(address, Duration::from_secs(3600));
    for _ in 0..3 {
        assert_eq!(attempt(&mut wire, 0..3).await, Outcome::OK);
    }
    assert!(wire.fallen_back());
    assert_eq!(*asked.lock().expect("a list"), "alll");
    assert_eq!(Wire::<Records>::tally(&mut wire).switches, 1);

    let mut wire = both(address, Duration::ZERO);
    asked.lock().expect("a list").clear();
    for _ in 0..2 {
        assert_eq!(attempt(&mut wire, 0..3).await, Outcome::OK);
    }
    knows.store(1, Ordering::Relaxed);
    assert_eq!(attempt(&mut wire, 0..3).await, Outcome::OK);
    assert!(!wire.fallen_back());
    assert_eq!(*asked.lock().expect("a list"), "alala");
    assert_eq!(Wire::<Records>::tally(&mut wire).switches, 2);
}

/// No other failure is a reason to fall back.
#[tokio::test]
async fn other_failures_change_nothing() {
    for status in ["14", "16", "13", "8"] {
        let (address, asked, _) = server(status).await;
        let mut wire = both(address, Duration::from_secs(3600));
        assert!(!matches!(attempt(&mut wire, 0..3).await, Outcome::Accepted { .. }));
        assert!(!wire.fallen_back(), "{status}");
        assert_eq!(*asked.lock().expect("a list"), "a");
    }
    let dead = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let mut wire = both(dead, Duration::from_secs(3600));
    assert_eq!(class(&attempt(&mut wire, 0..3).await), 'R');
    assert!(!wire.fallen_back());
}
