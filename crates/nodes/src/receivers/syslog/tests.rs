//! The node in the engine's test harness.

use std::io::Write;
use std::time::{Duration, Instant};

use otel_arrow_dfe_engine::control::NodeControlMsg;
use otel_arrow_dfe_engine::testing::receiver::TestRuntime;
use otel_arrow_dfe_engine::testing::{test_node, test_pipeline_ctx};
use serde_json::json;

use super::*;
use crate::accounts::{self, Account};

const LINES: usize = 500;
/// Bytes of a line as the receiver counts them.
const LINE_BYTES: usize = 20;

/// What is handed on stays within `max_in_flight_bytes` as long as the next node keeps it, and goes on when it is freed,
/// acknowledged or not. At the drain everything comes, and the books balance although no outcome ever came.
#[test]
fn what_is_in_flight_is_bounded() {
    let mut file = tempfile::NamedTempFile::new().expect("file");
    for at in 0..LINES {
        writeln!(file, "{:<LINE_BYTES$}", format!("<34>su: message {at}")).expect("written");
    }
    let config = Config::parse(&json!({
        "replay": {"path": file.path(), "rate": "unlimited"},
        "batch": {"max_messages": 10},
        "max_in_flight_bytes": 5 * 10 * LINE_BYTES,
    }))
    .expect("config");
    let (pipeline, _registry) = test_pipeline_ctx();
    let registrar = pipeline.metric_set_registrar_for_entity(pipeline.register_node_entity());
    let receiver = SyslogReceiver {
        rates: Rates::new(None, None),
        name: NodeName::of(&pipeline),
        pipeline: PipelineInstance::of(&pipeline),
        metrics: SyslogMetrics::register(&registrar),
        parsed: Told::new(ParsedMetrics::register(&registrar)),
        border: ReceiverMetrics::register_with_distribution(
            &registrar,
            pipeline.node_interests(),
            pipeline.node_duration_distribution(),
        ),
        pressure: LocalReceiverAdmissionState::from_process_state(&pipeline.memory_pressure_state()),
        sampling: None,
        sampled: SamplingReports::none(),
        config,
    };
    let node_config = Arc::new(NodeUserConfig::new_receiver_config(SYSLOG_RECEIVER_URN));
    let receiver = ReceiverWrapper::local(receiver, test_node("syslog"), node_config, &ReceiverConfig::new("syslog"));
    let runtime = TestRuntime::<OtapPdata>::new();
    runtime.set_receiver(receiver).run_test(|_| async {}).run_validation_concurrent(async move |mut context| {
        let (mut kept, mut batches) = (Vec::new(), 0);
        let pause = Duration::from_millis(50);
        for _ in 0..3 {
            for _ in 0..5 {
                kept.push(context.recv().await.expect("batch"));
                batches += 1;
            }
            assert!(tokio::time::timeout(pause, context.recv()).await.is_err(), "more than may be in flight");
            kept.clear();
        }
        // Little more than the margin that a drain leaves to the nodes behind.
        let deadline = Instant::now() + Duration::from_millis(2_500);
        let drain = NodeControlMsg::DrainIngress { deadline, reason: "test".into() };
        context.send_control_msg(drain).await.expect("sent");
        while let Ok(batch) = context.recv().await {
            kept.push(batch);
            batches += 1;
        }
        assert!(batches > 15);
    });
    let outcome_unknown = |account: &Account| account.notes.iter().any(|(note, _)| *note == "outcome unknown");
    // Nodes of other tests have accounts too, which are theirs to take.
    let account = accounts::take_one(|account| account.items == "messages" && outcome_unknown(account));
    let account = account.expect("account");
    assert!(account.is_balanced() && account.in_flight == 0, "{account}");
    assert!(account.received >= 160 && account.notes.contains(&("outcome unknown", account.sent)), "{account}");
}
