//! What a process costs between two points in time.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ProcessError;
use super::proc::{Memory, cpu_time, memory};
use crate::stats::mean;

/// Time between two looks at the memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A measurement that has begun. Dropping it ends its looking.
#[derive(Debug)]
pub(crate) struct Window {
    ids: Vec<u32>,
    began: Instant,
    cpu_before: Duration,
    stop: mpsc::Sender<()>,
    sampler: JoinHandle<Vec<f64>>,
}

/// What it cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// User and system time of all threads.
    pub(crate) cpu_seconds: f64,
    /// Largest resident size since the process began.
    pub(crate) peak_rss_mib: f64,
    /// Mean resident size in the window.
    pub(crate) mean_rss_mib: f64,
}

impl Window {
    /// Begins to measure processes that belong together.
    pub(super) fn open(ids: Vec<u32>) -> Result<Self, ProcessError> {
        let watched = ids.clone();
        let (stop, stopped) = mpsc::channel();
        let sampler = std::thread::Builder::new()
            .name("memory".into())
            .spawn(move || {
                let mut sizes = Vec::new();
                loop {
                    sizes.extend(total_memory(&watched).map(|memory| memory.rss_mib).ok());
                    if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                        return sizes;
                    }
                }
            })
            .map_err(ProcessError::io("start a thread"))?;
        Ok(Self { began: Instant::now(), cpu_before: total_time(&ids)?, ids, stop, sampler })
    }

    /// Ends the measurement; the processes must still be there.
    pub(crate) fn close(self) -> Result<Cost, ProcessError> {
        let seconds = self.began.elapsed().as_secs_f64();
        let cpu = total_time(&self.ids)?.saturating_sub(self.cpu_before);
        let memory = total_memory(&self.ids)?;
        // Fails only if the thread is gone, of which joining tells more.
        let _ = self.stop.send(());
        let sizes = self.sampler.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Cost {
            seconds,
            cpu_seconds: cpu.as_secs_f64(),
            peak_rss_mib: memory.peak_rss_mib,
            mean_rss_mib: mean(&sizes).unwrap_or(memory.rss_mib),
        })
    }
}

fn total_time(ids: &[u32]) -> Result<Duration, ProcessError> {
    ids.iter().map(|id| cpu_time(*id)).sum()
}

/// Sizes of all of them; pages that they share count for each.
fn total_memory(ids: &[u32]) -> Result<Memory, ProcessError> {
    ids.iter().try_fold(Memory { rss_mib: 0.0, peak_rss_mib: 0.0 }, |sum, id| {
        let one = memory(*id)?;
        Ok(Memory { rss_mib: sum.rss_mib + one.rss_mib, peak_rss_mib: sum.peak_rss_mib + one.peak_rss_mib })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This process has a size, and no cost is negative.
    #[test]
    fn this_process() {
        let cost = Window::open(vec![std::process::id()]).unwrap().close().unwrap();
        assert!(cost.mean_rss_mib > 0.1 && cost.peak_rss_mib > 0.1, "{cost:?}");
        assert!(cost.seconds > 0.0 && cost.cpu_seconds >= 0.0, "{cost:?}");
    }
}
