//! A wire with another to fall back on: OTAP, and OTLP where a server does not know OTAP.

use std::time::Duration;

use tokio::time::Instant;

use super::{Tally, Wire};
use crate::outcome::Outcome;

/// Two wires, of which the first is used whenever the server knows it.
///
/// When the first ends an attempt with [`Outcome::Downgrade`], the same attempt goes on over the second, and so do those
/// of the time to come; then the first is tried again. No other failure changes anything: a server that is away is not a
/// server that cannot do it.
pub struct Switch<A, B> {
    first: A,
    second: B,
    probe_after: Duration,
    /// The second is used until then.
    until: Option<Instant>,
    /// Which one has the attempt that is out.
    on_second: bool,
    switches: u64,
}

/// What the two keep of a request.
#[derive(Debug)]
pub struct Both<A, B> {
    first: Option<A>,
    second: Option<B>,
}

impl<A, B> Switch<A, B> {
    /// Falls back from `first` on `second` for `probe_after` each time.
    pub const fn new(first: A, second: B, probe_after: Duration) -> Self {
        Self { first, second, probe_after, until: None, on_second: false, switches: 0 }
    }

    /// The second wire is in use.
    pub const fn fallen_back(&self) -> bool {
        self.until.is_some()
    }
}

impl<P, A: Wire<P>, B: Wire<P>> Wire<P> for Switch<A, B> {
    type Kept = Both<A::Kept, B::Kept>;

    async fn attempt(&mut self, payloads: &[P], kept: &mut Option<Self::Kept>, deadline: Instant) -> Outcome {
        let kept = kept.get_or_insert(Both { first: None, second: None });
        if self.until.is_none_or(|until| until <= Instant::now()) {
            self.on_second = false;
            let outcome = self.first.attempt(payloads, &mut kept.first, deadline).await;
            if !matches!(outcome, Outcome::Downgrade { .. }) {
                // Only an answer shows that the server knows it; until there is one, the next attempt asks again.
                let answered = !matches!(outcome, Outcome::Retry { .. } | Outcome::Unencodable { .. });
                if answered && self.until.take().is_some() {
                    self.switches += 1;
                }
                return outcome;
            }
            kept.first = None;
            self.switches += u64::from(self.until.is_none());
            self.until = Some(Instant::now() + self.probe_after);
        }
        self.on_second = true;
        self.second.attempt(payloads, &mut kept.second, deadline).await
    }

    fn abandon(&mut self) -> bool {
        if self.on_second { self.second.abandon() } else { self.first.abandon() }
    }

    fn tally(&mut self) -> Tally {
        let mut tally = self.first.tally();
        tally.add(self.second.tally());
        tally.switches += std::mem::take(&mut self.switches);
        tally
    }

    async fn close(&mut self) {
        self.first.close().await;
        self.second.close().await;
    }
}
