//! What a process costs between two points in time.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::ProcessError;
use super::proc::{cpu_time, memory};
use crate::stats::mean;

/// Time between two looks at the memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A measurement that has begun. Dropping it ends its looking.
#[derive(Debug)]
pub(crate) struct Window {
    id: u32,
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
    /// Begins to measure a process.
    pub(super) fn open(id: u32) -> Result<Self, ProcessError> {
        let (stop, stopped) = mpsc::channel();
        let sampler = std::thread::Builder::new()
            .name("memory".into())
            .spawn(move || {
                let mut sizes = Vec::new();
                loop {
                    sizes.extend(memory(id).map(|memory| memory.rss_mib).ok());
                    if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                        return sizes;
                    }
                }
            })
            .map_err(ProcessError::io("start a thread"))?;
        Ok(Self { id, began: Instant::now(), cpu_before: cpu_time(id)?, stop, sampler })
    }

    /// Ends the measurement; the process must still be there.
    pub(crate) fn close(self) -> Result<Cost, ProcessError> {
        let seconds = self.began.elapsed().as_secs_f64();
        let cpu = cpu_time(self.id)?.saturating_sub(self.cpu_before);
        let memory = memory(self.id)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// This process has a size, and no cost is negative.
    #[test]
    fn this_process() {
        let cost = Window::open(std::process::id()).unwrap().close().unwrap();
        assert!(cost.mean_rss_mib > 0.1 && cost.peak_rss_mib > 0.1, "{cost:?}");
        assert!(cost.seconds > 0.0 && cost.cpu_seconds >= 0.0, "{cost:?}");
    }
}
