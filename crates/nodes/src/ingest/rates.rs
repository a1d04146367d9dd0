//! How many messages a sender may send.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use otel_arrow_dfe_config::error::Error;
use otel_arrow_dfe_engine::admission::{AdmissionContext, AdmissionDimension, LocalAdmissionGate};
use otel_arrow_dfe_engine::context::PipelineContext;
use otel_arrow_dfe_engine::memory_limiter::LocalReceiverAdmissionState;
use tokio::time::Instant;

use super::recent::Recent;
use crate::config;

/// Source addresses whose rate is kept.
const SOURCES_KEPT: usize = 8_192;
/// How long a connection waits before it asks the engine's limiter again.
const GATE_PAUSE: Duration = Duration::from_millis(100);

/// The rate of one source address: tokens for at most one second.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: f64,
    tokens: Cell<f64>,
    filled: Cell<Instant>,
}

impl Bucket {
    fn new(rate: u32, now: Instant) -> Self {
        let rate = f64::from(rate);
        Self { rate, tokens: Cell::new(rate), filled: Cell::new(now) }
    }

    /// How long until there is a token; zero if there is one.
    fn wait(&self, now: Instant) -> Duration {
        let elapsed = now.saturating_duration_since(self.filled.get()).as_secs_f64();
        self.filled.set(now);
        self.tokens.set(self.rate.min(self.tokens.get() + elapsed * self.rate));
        let missing = 1.0 - self.tokens.get();
        if missing > 0.0 { Duration::from_secs_f64(missing / self.rate) } else { Duration::ZERO }
    }

    fn charge(&self) {
        self.tokens.set(self.tokens.get() - 1.0);
    }
}

/// The limits of rates: of the engine for all messages, which it enforces under memory pressure only, and ours for each
/// source address.
pub(crate) struct Rates {
    gate: Option<LocalAdmissionGate>,
    per_source: Option<u32>,
    buckets: RefCell<Recent<IpAddr, Rc<Bucket>>>,
}

impl Rates {
    pub(crate) fn new(gate: Option<LocalAdmissionGate>, per_source: Option<u32>) -> Self {
        Self { gate, per_source, buckets: RefCell::new(Recent::new(SOURCES_KEPT)) }
    }

    /// Binds the rate limiter of the node's `rate_limiters`, if it has one; it counts messages (datagrams, where they are
    /// what a sender sends). `per_source` is our own limit, in messages a second of a source address. To be called once
    /// for each node, when it is made.
    ///
    /// # Errors
    /// The limiter counts something else.
    pub(crate) fn bind(
        pipeline: &PipelineContext,
        pressure: LocalReceiverAdmissionState,
        per_source: Option<u32>,
    ) -> Result<Self, Error> {
        let gate = pipeline.admission().bind_local(AdmissionDimension::Messages, pressure);
        let gate = gate.map_err(|error| config::invalid(format!("rate_limiters: {error}")))?;
        Ok(Self::new(gate, per_source))
    }

    /// The bucket of a source address, if there is a limit for it.
    pub(crate) fn bucket(&self, source: IpAddr) -> Option<Rc<Bucket>> {
        let rate = self.per_source?;
        let make = || Rc::new(Bucket::new(rate, Instant::now()));
        Some(self.buckets.borrow_mut().get(&source.to_canonical(), make))
    }

    /// Whether a datagram may be taken in. If so it is charged.
    pub(crate) fn admit(&self, source: IpAddr) -> bool {
        if let Some(bucket) = self.bucket(source) {
            if bucket.wait(Instant::now()) > Duration::ZERO {
                return false;
            }
            bucket.charge();
        }
        match &self.gate {
            Some(gate) => gate.admit(1, AdmissionContext::EMPTY).is_admitted(),
            None => true,
        }
    }

    /// Whether messages of a connection are not counted.
    pub(crate) fn are_unlimited(&self, bucket: Option<&Bucket>) -> bool {
        self.gate.is_none() && bucket.is_none()
    }

    /// How long a connection waits before its next message.
    pub(crate) fn wait(&self, bucket: Option<&Bucket>) -> Duration {
        if self.gate.as_ref().is_some_and(LocalAdmissionGate::is_instance_saturated) {
            return GATE_PAUSE;
        }
        bucket.map_or(Duration::ZERO, |bucket| bucket.wait(Instant::now()))
    }

    /// A message of a connection has been taken in.
    pub(crate) fn charge(&self, bucket: Option<&Bucket>) {
        if let Some(bucket) = bucket {
            bucket.charge();
        }
        if let Some(gate) = &self.gate {
            // It was asked whether there is room; this only counts.
            let _ = gate.admit(1, AdmissionContext::EMPTY);
        }
    }
}

#[cfg(test)]
mod tests {
    use otel_arrow_dfe_engine::admission::AdmissionBinder;
    use otel_arrow_dfe_engine::memory_limiter::{MemoryPressureChanged, MemoryPressureLevel, MemoryPressureState};

    use super::*;

    /// A bucket gives a second's worth at once, and then its rate.
    #[tokio::test]
    async fn a_bucket_gives_its_rate() {
        let start = Instant::now();
        let bucket = Bucket::new(10, start);
        for _ in 0..10 {
            assert_eq!(bucket.wait(start), Duration::ZERO);
            bucket.charge();
        }
        assert_eq!(bucket.wait(start), Duration::from_millis(100));
        let later = start + Duration::from_millis(350);
        let taken = (0..10).take_while(|_| bucket.wait(later).is_zero().then(|| bucket.charge()).is_some()).count();
        assert_eq!(taken, 3);
        let much_later = later + Duration::from_secs(3_600);
        assert_eq!(bucket.wait(much_later), Duration::ZERO);
        assert!(bucket.tokens.get() <= 10.0, "no more than a second's worth");
    }

    /// One source does not use up the rate of another; ports do not matter, nor how IPv4 came.
    #[tokio::test]
    async fn each_source_has_its_own() {
        let rates = Rates::new(None, Some(1));
        let (one, mapped, other) = (
            "192.0.2.1".parse().expect("v4"),
            "::ffff:192.0.2.1".parse().expect("v6"),
            "192.0.2.2".parse().expect("v4"),
        );
        assert!(rates.admit(one));
        assert!(!rates.admit(mapped) && rates.admit(other));
        assert!(Rates::new(None, None).bucket(one).is_none());
    }

    /// The engine's limiter lets everything pass until memory is short; then datagrams are refused and connections wait.
    #[tokio::test]
    async fn the_limiter_of_the_engine_is_asked() {
        let policy = serde_json::json!({
            "enforcement": "enforce",
            "aggregation": "receiver_instance",
            "unit": "messages",
            "pressure": "soft",
            "token_bucket": {"allow": 2, "interval": "1h", "burst": 2},
        });
        let source = "192.0.2.1".parse().expect("address");
        for (level, admitted) in [(MemoryPressureLevel::Normal, 5), (MemoryPressureLevel::Soft, 2)] {
            let pressure = LocalReceiverAdmissionState::from_process_state(&MemoryPressureState::default());
            pressure.apply(MemoryPressureChanged { generation: 1, level, retry_after_secs: 1, usage_bytes: 0 });
            let policy = serde_json::from_value(policy.clone()).expect("policy");
            let gate = AdmissionBinder::configured("test", policy).bind_local(AdmissionDimension::Messages, pressure);
            let rates = Rates::new(gate.expect("bound"), None);
            assert_eq!(rates.wait(None), Duration::ZERO);
            assert_eq!((0..5).filter(|_| rates.admit(source)).count(), admitted);
            assert_eq!(rates.wait(None).is_zero(), admitted == 5, "{level:?}");
        }
    }
}
