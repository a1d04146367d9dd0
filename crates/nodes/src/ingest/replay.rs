//! Input from files: captures, message streams, lines.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use catchment_capture::{Counts, Format, Item, Options, Packet, Reader};
use otel_arrow_dfe_config::error::Error as ConfigError;
use otel_arrow_dfe_engine::error::{Error, ReceiverErrorKind};
use otel_arrow_dfe_engine::local::receiver::EffectHandler;
use otel_arrow_dfe_otap::pdata::OtapPdata;
use serde::{Deserialize, Deserializer};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::config;

/// Packets read ahead of their time.
const READ_AHEAD: usize = 256;

/// A file to read as if it came from the network now.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayConfig {
    /// The file: pcap, pcapng, a stream of IPFIX messages, or lines.
    pub(crate) path: PathBuf,
    /// Pace.
    #[serde(default)]
    pub(crate) rate: Rate,
    /// Begin again at the end, without end.
    #[serde(default, rename = "loop")]
    pub(crate) repeat: bool,
}

/// Pace of a replay: `capture`, `unlimited`, or packets (lines) per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Rate {
    /// By the times of the capture; a file without times is not paced.
    #[default]
    Capture,
    /// As fast as the pipeline takes it.
    Unlimited,
    /// So many packets or lines each second.
    PerSecond(f64),
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let value = serde_json::Value::deserialize(deserializer)?;
        let found = value.to_string();
        match value {
            serde_json::Value::String(text) if text == "capture" => Ok(Self::Capture),
            serde_json::Value::String(text) if text == "unlimited" => Ok(Self::Unlimited),
            serde_json::Value::Number(number) => number
                .as_f64()
                .filter(|rate| *rate > 0.0 && rate.is_finite())
                .map(Self::PerSecond)
                .ok_or_else(|| D::Error::custom(format!("{found} is no rate, expected a number above 0"))),
            _ => Err(D::Error::custom(format!(
                "{found} is no rate, expected packets per second, `capture` or `unlimited`"
            ))),
        }
    }
}

impl ReplayConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.path.as_os_str().is_empty() {
            return Err(config::invalid("config.replay.path: empty, expected the path of a capture or text file"));
        }
        Ok(())
    }
}

/// A file is read once, not once a core.
pub(crate) fn check_cores(replay: Option<&ReplayConfig>, cores: usize) -> Result<(), ConfigError> {
    if replay.is_some() && cores > 1 {
        return Err(config::invalid(format!(
            "config.replay: this pipeline runs on {cores} cores and each would read the file; \
             expected policies.resources.core_allocation: {{type: core_count, count: 1}}"
        )));
    }
    Ok(())
}

/// Opens the file, so that a wrong path is an error at start; so is a text file unless `lines` are wanted.
pub(crate) fn open(
    effects: &EffectHandler<OtapPdata>,
    replay: &ReplayConfig,
    lines: bool,
    max_line_bytes: usize,
) -> Result<Reader<File>, Error> {
    let opened = Reader::open_with(&replay.path, Options { max_line_bytes, ..Options::default() })
        .map_err(|error| error.to_string())
        .and_then(|reader| {
            if reader.format() == Format::Lines && !lines {
                return Err(format!(
                    "{} is neither a pcap or pcapng capture nor a stream of IPFIX messages",
                    replay.path.display()
                ));
            }
            Ok(reader)
        });
    opened.map_err(|error| Error::ReceiverError {
        receiver: effects.receiver_id(),
        kind: ReceiverErrorKind::Configuration,
        error: format!("config.replay: {error}"),
        source_detail: String::new(),
    })
}

/// What is handed to the receiver.
#[derive(Debug)]
pub(crate) enum Replayed {
    /// A datagram, message or line.
    Packet(Packet),
    /// The file has been gone through, to its end or as far as it can be read.
    Pass(Counts),
    /// The file cannot be read on.
    Failed(String),
}

/// Reads the file in the background and calls `take` for each packet when its time has come. Ends at the end of the
/// file, at the first error, or on `stop`.
pub(crate) async fn replay<F>(
    replay: ReplayConfig,
    first: Reader<File>,
    max_line_bytes: usize,
    stop: CancellationToken,
    mut take: F,
) where
    F: AsyncFnMut(Replayed),
{
    let (sender, mut packets) = mpsc::channel(READ_AHEAD);
    let rate = replay.rate;
    let file = tokio::task::spawn_blocking(move || read(&replay, first, max_line_bytes, &sender));
    let mut pace = Pace::new(rate);
    loop {
        let next = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            next = packets.recv() => next,
        };
        let Some(replayed) = next else { break };
        match &replayed {
            Replayed::Packet(packet) => {
                if let Some(time) = pace.time_of(packet) {
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => break,
                        () = sleep_until(time) => {}
                    }
                }
            }
            Replayed::Pass(_) => pace = Pace::new(rate),
            Replayed::Failed(_) => {}
        }
        take(replayed).await;
    }
    // Lets a reader that waits for room end.
    drop(packets);
    let _ = file.await;
}

fn read(replay: &ReplayConfig, first: Reader<File>, max_line_bytes: usize, out: &mpsc::Sender<Replayed>) {
    let mut reader = first;
    loop {
        let mut found = false;
        loop {
            match reader.next() {
                Some(Ok(Item::Packet(packet))) => {
                    found = true;
                    if out.blocking_send(Replayed::Packet(packet)).is_err() {
                        return;
                    }
                }
                Some(Ok(Item::Skipped { .. })) => {}
                Some(Err(error)) => {
                    // The receiver may be gone already; then nobody wants to know.
                    let _ = out.blocking_send(Replayed::Pass(reader.counts().clone()));
                    let _ = out.blocking_send(Replayed::Failed(error.to_string()));
                    return;
                }
                None => break,
            }
        }
        let pass = Replayed::Pass(reader.counts().clone());
        // A file without a single packet would be read over and over for nothing.
        if out.blocking_send(pass).is_err() || !replay.repeat || !found {
            return;
        }
        match Reader::open_with(&replay.path, Options { max_line_bytes, ..Options::default() }) {
            Ok(again) => reader = again,
            Err(error) => {
                let _ = out.blocking_send(Replayed::Failed(error.to_string()));
                return;
            }
        }
    }
}

/// When each packet is due.
struct Pace {
    rate: Rate,
    begin: Option<(Instant, i64)>,
    sent: u64,
}

impl Pace {
    fn new(rate: Rate) -> Self {
        Self { rate, begin: None, sent: 0 }
    }

    fn time_of(&mut self, packet: &Packet) -> Option<Instant> {
        let captured = packet.time_unix_nano;
        match self.rate {
            Rate::Unlimited => None,
            Rate::PerSecond(rate) => {
                let (begin, _) = *self.begin.get_or_insert_with(|| (Instant::now(), 0));
                #[allow(clippy::cast_precision_loss, reason = "a count of packets")]
                let after = Duration::try_from_secs_f64(self.sent as f64 / rate).ok()?;
                self.sent += 1;
                begin.checked_add(after)
            }
            Rate::Capture => {
                let captured = captured?;
                let (begin, origin) = *self.begin.get_or_insert_with(|| (Instant::now(), captured));
                let after = u64::try_from(captured.saturating_sub(origin)).unwrap_or(0);
                begin.checked_add(Duration::from_nanos(after))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(value: serde_json::Value) -> Result<Rate, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn rates_are_numbers_or_words() {
        assert_eq!(rate(serde_json::json!(2.5)), Ok(Rate::PerSecond(2.5)));
        assert_eq!(rate(serde_json::json!("capture")), Ok(Rate::Capture));
        assert_eq!(rate(serde_json::json!("unlimited")), Ok(Rate::Unlimited));
        for bad in [serde_json::json!(0), serde_json::json!("fast"), serde_json::json!(-1)] {
            assert!(rate(bad).expect_err("refused").contains("expected"));
        }
    }

    /// Packets are due in even steps, or as far apart as they were captured.
    #[tokio::test]
    async fn packets_are_due_in_their_time() {
        let packet = |time_unix_nano| Packet {
            time_unix_nano,
            source: None,
            destination: None,
            payload: Vec::new(),
            transport: catchment_capture::Transport::File,
            offset: 0,
            truncated: false,
        };
        let mut even = Pace::new(Rate::PerSecond(4.0));
        let first = even.time_of(&packet(None)).expect("paced");
        assert_eq!(even.time_of(&packet(None)).expect("paced") - first, Duration::from_millis(250));
        let mut captured = Pace::new(Rate::Capture);
        let first = captured.time_of(&packet(Some(1_000))).expect("paced");
        assert_eq!(captured.time_of(&packet(Some(8_000))).expect("paced") - first, Duration::from_nanos(7_000));
        assert_eq!(captured.time_of(&packet(Some(0))).expect("paced"), first, "never before the first");
        assert_eq!(captured.time_of(&packet(None)), None);
    }
}
