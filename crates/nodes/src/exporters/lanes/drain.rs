//! The end of the exporter: what can be delivered by the deadline is, the rest is given back in order.

use std::time::Instant as StdInstant;

use otel_arrow_dfe_engine::control::NackCause;
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::terminal_state::TerminalState;
use tokio::time::{Instant, sleep_until};

use super::node::{Heard, Running};

impl Running {
    /// Ends by the deadline, whatever the server does.
    pub(super) async fn drain(mut self, deadline: StdInstant) -> Result<TerminalState, Error> {
        let now = Instant::now();
        let left = Instant::from_std(deadline).saturating_duration_since(now);
        // A short time is shared between sending and giving back.
        let margin = self.config.margin.min(left / 2);
        let stop = now + (left - margin);
        let abort = stop + margin / 2;
        let mut open = vec![true; self.config.count.get()];
        let mut is_over = false;
        while !self.lanes.tasks.is_empty() {
            for (lane, open) in open.iter_mut().enumerate() {
                if is_over {
                    self.strand(lane);
                }
                // Only a lane that is not closed yet takes what waits for it.
                if *open && !self.waits_for(lane) {
                    self.lanes.handles[lane].drain(stop);
                    *open = false;
                }
            }
            tokio::select! {
                biased;
                heard = self.heard() => match heard {
                    Heard::Verdict(resolved) => self.resolve(resolved).await?,
                    // One that failed has given back what it had.
                    Heard::Ended(_) => {}
                    Heard::Room(lane) => self.push(lane),
                },
                () = sleep_until(stop), if !is_over => is_over = true,
                () = sleep_until(abort), if is_over => self.lanes.tasks.abort_all(),
            }
        }
        self.give_back("not sent before the end of the node", NackCause::NodeShutdown).await?;
        self.count();
        let snapshots = self.metrics.snapshots();
        Ok(TerminalState::new(deadline, snapshots))
    }
}
