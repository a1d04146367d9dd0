//! Scripts: read, checked, chosen from, and made.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;

/// Everything that a script can say, read from YAML and written back.
#[test]
fn every_key() {
    let script = SinkScript::from_yaml(include_str!("tests/every-key.yaml")).unwrap();
    assert_eq!(script.seed, 7);
    assert_eq!(script.window_bytes, 4_096);
    let answers: Vec<_> = script.steps.iter().map(|step| step.answer.name()).collect();
    assert_eq!(
        answers,
        [
            "grpc UNAVAILABLE",
            "grpc 99",
            "http 429",
            "http 503",
            "batch_status CANCELLED",
            "partial_success 2",
            "close during_body",
            "goaway exclude",
            "reset_stream 7",
            "end_stream",
            "size_limit 4096",
            "lie out_of_order",
            "grpc UNIMPLEMENTED",
            "never",
            "ok",
        ]
    );
    let first = &script.steps[0];
    assert_eq!(first.when.signal, Some(Signal::Logs));
    assert_eq!((first.when.from, first.when.to, first.when.every, first.times), (2, Some(9), 3, Some(2)));
    assert_eq!((first.when.after, first.when.before), (Duration::from_secs(1), Some(Duration::from_secs(5))));
    assert_eq!((first.store, first.delay), (Some(true), Duration::from_millis(50)));
    let reading = StopReading { time: Duration::from_millis(200), of: Unread::Connection };
    assert_eq!(first.stop_reading, Some(reading));
    let again = SinkScript::from_yaml(&script.to_yaml().unwrap()).unwrap();
    assert_eq!(again, script);
    assert_eq!(SinkScript::from_yaml("").unwrap(), SinkScript::default());
}

/// Errors name the key, and say what would be right.
#[test]
fn errors() {
    for (yaml, key, right) in [
        ("stepps: []", "stepps", "`steps`"),
        ("window_bytes: 0", "window_bytes", "expected 1 to"),
        ("steps: [{ whenn: {} }]", "steps[0].whenn", "`when`"),
        ("steps: [{ delay: soon }]", "steps[0].delay", "expected"),
        ("steps: [{ answer: { grpc: { code: MAYBE } } }]", "steps[0].answer.grpc.code", "UNAVAILABLE"),
        ("steps: [{ answer: { grpc: { message: x } } }]", "steps[0].answer.grpc", "missing field `code`"),
        ("steps: [{ answer: { grpc: { code: 1, retry: 1s } } }]", "steps[0].answer.grpc.retry", "`retry_info`"),
        ("steps: [{ answer: maybe }]", "steps[0].answer", "`never`"),
        ("steps: [{}, { answer: { http: { status: 99 } } }]", "steps[1].answer.http.status", "200 to 599"),
        ("steps: [{ when: { from: 0 } }]", "steps[0].when.from", "first request is 1"),
        ("steps: [{ when: { from: 4, to: 3 } }]", "steps[0].when.to", "at least `from`, which is 4"),
        ("steps: [{ when: { every: 0 } }]", "steps[0].when.every", "at least 1"),
        ("steps: [{ when: { probability: 1.5 } }]", "steps[0].when.probability", "expected 0 to 1"),
        ("steps: [{ when: { after: 2s, before: 1s } }]", "steps[0].when.before", "more than `after`"),
        ("steps: [{ times: 0 }]", "steps[0].times", "at least 1"),
        ("steps: [{ when: { protocol: otap }, answer: { http: { status: 500 } } }]", "steps[0].answer", "otlp_http"),
        ("steps: [{ when: { on: open }, answer: end_stream }]", "steps[0].answer", "before_body"),
        ("steps: [{ store: true, answer: { close: { at: during_body } } }]", "steps[0].store", "nothing is read"),
        ("steps: [{ store: false, answer: { partial_success: { rejected: 1 } } }]", "steps[0].store", "partial"),
        ("steps: [{ delay: 1s, answer: { lie: out_of_order } }]", "steps[0].answer", "no `delay`"),
        ("steps: [{ answer: { size_limit: { bytes: 0 } } }]", "steps[0].answer.size_limit.bytes", "at least 1"),
    ] {
        let error = SinkScript::from_yaml(yaml).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{key}: ")), "{yaml}: {error}");
        assert!(error.contains(right), "{yaml}: {error}");
    }
    assert!(matches!(SinkScript::from_yaml("{"), Err(ScriptError::Yaml(_))));
    let missing = SinkScript::from_file("/nowhere/script.yaml".as_ref()).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/script.yaml"), "{missing}");
}

fn chosen(yaml: &str, requests: u64, elapsed: Duration) -> Vec<Option<usize>> {
    let script = SinkScript::from_yaml(yaml).unwrap();
    let mut chooser = Chooser::new(Arc::new(script));
    (0..requests).map(|_| chooser.choose(Protocol::OtlpGrpc, Signal::Logs, Event::Request, elapsed)).collect()
}

/// The first step that fits takes a request; ordinals count all requests of the step's kind, whoever takes them.
#[test]
fn choice() {
    let yaml = "
        steps:
          - when: { from: 2, to: 3 }
          - when: { from: 3, every: 2 }
            times: 2
          - when: { protocol: otap }
          - answer: { http: { status: 500 } }
          - when: { signal: logs, from: 9 }
        ";
    let none = None;
    let expected = [none, Some(0), Some(0), none, Some(1), none, Some(1), none, Some(4), Some(4)];
    assert_eq!(chosen(yaml, 10, Duration::ZERO), expected);
    let timed = "steps: [{ when: { after: 1s, before: 2s } }]";
    assert_eq!(chosen(timed, 1, Duration::from_millis(999)), [None]);
    assert_eq!(chosen(timed, 1, Duration::from_millis(1_000)), [Some(0)]);
    assert_eq!(chosen(timed, 1, Duration::from_millis(2_000)), [None]);
}

/// A probability takes about its part, the same for the same seed and another for another.
#[test]
fn probability() {
    let with_seed =
        |seed| chosen(&format!("seed: {seed}\nsteps: [{{ when: {{ probability: 0.25 }} }}]"), 4_000, Duration::ZERO);
    let first = with_seed(1);
    let taken = first.iter().flatten().count();
    assert!((800..1_200).contains(&taken), "{taken}");
    assert_eq!(first, with_seed(1));
    assert_ne!(first, with_seed(2));
    assert_eq!(chosen("steps: [{ when: { probability: 0 } }]", 9, Duration::ZERO), [None; 9]);
    assert_eq!(chosen("steps: [{ when: { probability: 1 } }]", 9, Duration::ZERO), [Some(0); 9]);
}

/// Words of refusals for size, and which of the two sizes they name.
#[test]
fn size_limits() {
    let limit = |wording| Answer::SizeLimit { bytes: 100, wording };
    let message = |answer: Answer| match answer {
        Answer::Grpc { code, message, .. } => (code, message),
        Answer::Http { status, message, .. } => (Code(status.into()), message),
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(Wording::Go).for_size(100, 100, Protocol::Otap), Answer::Ok);
    assert_eq!(
        message(limit(Wording::Go).for_size(101, 500, Protocol::OtlpGrpc)),
        (Code::RESOURCE_EXHAUSTED, "grpc: received message larger than max (101 vs. 100)".into())
    );
    assert_eq!(
        message(limit(Wording::Go).for_size(50, 500, Protocol::OtlpGrpc)),
        (Code::RESOURCE_EXHAUSTED, "grpc: received message after decompression larger than max (500 vs. 100)".into())
    );
    let (code, words) = message(limit(Wording::Tonic).for_size(50, 500, Protocol::Otap));
    assert_eq!(code, Code::OUT_OF_RANGE);
    assert!(words.ends_with("decoded message length too large: found 500 bytes, the limit is: 100 bytes"), "{words}");
    assert_eq!(message(limit(Wording::Go).for_size(50, 500, Protocol::OtlpHttp)).0, Code(413));
}

/// Scripts from seeds are valid, the same for the same seed, end by themselves, and have all kinds of faults.
#[test]
fn random_scripts() {
    for protocol in [Protocol::OtlpGrpc, Protocol::OtlpHttp, Protocol::Otap] {
        let mut kinds = BTreeSet::new();
        for seed in 0..200 {
            let script = SinkScript::random(seed, protocol, 0.5);
            script.check().unwrap_or_else(|error| panic!("{seed}: {error}\n{}", script.to_yaml().unwrap()));
            assert_eq!(script, SinkScript::random(seed, protocol, 0.5));
            assert_ne!(script, SinkScript::random(seed + 1, protocol, 0.5));
            assert_eq!(SinkScript::from_yaml(&script.to_yaml().unwrap()).unwrap(), script);
            assert!(script.fault_time().unwrap() <= Duration::from_secs(3));
            for step in &script.steps {
                assert!(step.when.to.is_some() && step.times.is_some(), "{step:?}");
                kinds.extend(step.name.as_deref().and_then(|name| name.split(':').next()).map(str::to_owned));
            }
        }
        assert_eq!(kinds, FaultKind::ALL.iter().map(ToString::to_string).collect());
    }
    let quiet = SinkScript::random(1, Protocol::Otap, f64::NAN);
    let wild = SinkScript::random(1, Protocol::Otap, 9.0);
    assert!(quiet.steps.len() < wild.steps.len());
    assert_eq!(SinkScript::from_yaml("steps: [{}]").unwrap().fault_time(), None);
}

/// The examples of the README are scripts.
#[test]
fn readme() {
    let readme = include_str!("../../../README.md");
    let examples: Vec<_> = readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let script = SinkScript::from_yaml(example).unwrap_or_else(|error| panic!("{error}\n{example}"));
        assert!(script.steps.len() >= 4);
    }
}
