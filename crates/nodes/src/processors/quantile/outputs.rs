//! Outputs on their way: sent again when they were refused for now, settled when their outcome is known.
//!
//! Each output keeps a copy of what was sent, which shares its columns or bytes, so that what is sent again is the same
//! to the last bit, identity of sketches included. Nodes downstream need not give anything back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use otel_arrow_dfe_config::PortName;
use otel_arrow_dfe_engine::control::CallData;
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::processor::EffectHandler;
use otel_arrow_dfe_engine::{Interests, MessageSourceLocalEffectHandlerExtension, ProducerEffectHandlerExtension};
use otel_arrow_dfe_otap::accessory::slots::{Key, State};
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata};
use otel_arrow_dfe_pdata_codec::OtapPayload;

/// When an output that was refused for now is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retry {
    /// Before the first time; doubled for each further one.
    pub(super) initial_interval: Duration,
    /// The longest wait.
    pub(super) max_interval: Duration,
    /// Time since it was sent first after which it is given up.
    pub(super) max_elapsed: Duration,
}

impl Retry {
    /// The wait before an output is sent for the `attempts + 1`st time again; `None` if it is given up.
    fn wait(&self, attempts: u32, elapsed: Duration) -> Option<Duration> {
        let factor = 2_u32.checked_pow(attempts).unwrap_or(u32::MAX);
        let wait = self.initial_interval.saturating_mul(factor).min(self.max_interval);
        (elapsed.saturating_add(wait) <= self.max_elapsed).then_some(wait)
    }
}

/// Why inputs are refused whose output waited to be sent again when the node ended.
pub(super) const GIVEN_UP: &str = "the node shut down before the output was accepted";
/// Why inputs are refused for now whose output had no outcome when the node ended.
pub(super) const UNKNOWN: &str = "the node shut down before the outcome was known";

/// What an output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Results of windows.
    Results,
    /// What goes on unchanged.
    Forwarded,
    /// Late items.
    Late,
}

/// Something to send.
#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) kind: Kind,
    /// Data points or log records.
    pub(super) items: u64,
    pub(super) payload: OtapPayload,
    /// Of the input that it was part of, without its subscribers.
    pub(super) context: Context,
}

/// An output whose outcome is not known.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) kind: Kind,
    pub(super) items: u64,
    /// The inputs that wait for it.
    pub(super) inputs: Vec<Key>,
    /// What to send again; absent if nothing ever is.
    again: Option<Box<Output>>,
    first: Instant,
    attempts: u32,
}

/// What becomes of a refused output.
#[derive(Debug)]
pub(super) enum Refused {
    /// It is sent again later.
    Later,
    /// It is given up.
    Finally(Sent),
}

/// Ports by the kind of output; `None` is the only one there is.
#[derive(Debug, Clone, Default)]
pub(super) struct Ports {
    pub(super) main: Option<PortName>,
    pub(super) late: Option<PortName>,
}

/// All outputs that are under way.
pub(super) struct Outputs {
    retry: Option<Retry>,
    ports: Ports,
    sent: State<Sent>,
    /// Those to send again, by time and by a number that tells equal times apart.
    waiting: BTreeMap<(Instant, u64), Key>,
    next: u64,
}

impl Outputs {
    /// Room for `max` outputs; none is sent again without `retry`.
    pub(super) fn new(max: usize, retry: Option<Retry>, ports: Ports) -> Self {
        Self { retry, ports, sent: State::new(max), waiting: BTreeMap::new(), next: 0 }
    }

    /// Whether there is room for another one.
    pub(super) fn has_room(&self) -> bool {
        self.sent.has_capacity()
    }

    /// Whether there are any to be sent again.
    pub(super) fn any_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends an output that `inputs` wait for. Gives what it is known by; if there is no room to keep it in mind, gives the
    /// inputs back.
    pub(super) async fn send(
        &mut self,
        output: Output,
        inputs: Vec<Key>,
        effects: &EffectHandler<OtapPdata>,
    ) -> Result<(Option<Key>, Vec<Key>), Error> {
        let Output { kind, items, .. } = output;
        let again = self.retry.map(|_| Box::new(output.clone()));
        let sent = Sent { kind, items, inputs, again, first: Instant::now(), attempts: 0 };
        let (key, untied) = match self.sent.allocate_with_data(sent) {
            Ok(key) => (Some(key), Vec::new()),
            Err(sent) => (None, sent.inputs),
        };
        self.put(output, key, effects).await?;
        Ok((key, untied))
    }

    async fn put(&self, output: Output, key: Option<Key>, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        let mut pdata = OtapPdata::new(output.context, output.payload);
        if let Some(key) = key {
            effects.subscribe_to(Interests::ACKS_OR_NACKS, CallData::from(key), &mut pdata);
        }
        let port = if output.kind == Kind::Late { &self.ports.late } else { &self.ports.main };
        match port {
            Some(port) => effects.send_message_with_source_node_to(port.clone(), pdata).await,
            None => effects.send_message_with_source_node(pdata).await,
        }
        .map_err(Error::from)
    }

    /// Whether the outcome of an output is still to come.
    pub(super) fn is_under_way(&self, output: Key) -> bool {
        self.sent.get(output).is_some()
    }

    /// Makes another input wait for an output that is under way. Whether it does from now on.
    pub(super) fn tie(&mut self, output: Key, input: Key) -> bool {
        let sent = self.sent.get_mut(output).filter(|sent| sent.inputs.last() != Some(&input));
        sent.is_some_and(|sent| {
            sent.inputs.push(input);
            true
        })
    }

    /// Takes an output that was acknowledged.
    pub(super) fn acknowledged(&mut self, calldata: &CallData) -> Option<Sent> {
        self.sent.take(Key::try_from(calldata.clone()).ok()?)
    }

    /// Notes that an output was refused, for good (`permanent`) or for now. `None` if it is not known.
    pub(super) fn refused(&mut self, calldata: &CallData, permanent: bool, now: Instant) -> Option<Refused> {
        let key = Key::try_from(calldata.clone()).ok()?;
        let sent = self.sent.get_mut(key)?;
        let elapsed = now.saturating_duration_since(sent.first);
        let wait = self.retry.filter(|_| !permanent).and_then(|retry| retry.wait(sent.attempts, elapsed));
        let Some(wait) = wait else { return self.sent.take(key).map(Refused::Finally) };
        sent.attempts = sent.attempts.saturating_add(1);
        self.next += 1;
        let _ = self.waiting.insert((now + wait, self.next), key);
        Some(Refused::Later)
    }

    /// Sends again what waits until `now`; with `None`, all. Gives their number.
    pub(super) async fn send_again(
        &mut self,
        now: Option<Instant>,
        effects: &EffectHandler<OtapPdata>,
    ) -> Result<u64, Error> {
        let mut again = 0;
        while let Some(entry) = self.waiting.first_entry() {
            if now.is_some_and(|now| entry.key().0 > now) {
                break;
            }
            let key = entry.remove();
            if let Some(output) = self.sent.get(key).and_then(|sent| sent.again.as_deref()) {
                let output = Output { context: output.context.clone_detached(), ..output.clone() };
                again += 1;
                self.put(output, Some(key), effects).await?;
            }
        }
        Ok(again)
    }

    /// Sends once more what waits to be sent again, and takes it: its outcome will not be known.
    pub(super) async fn give_up(&mut self, effects: &EffectHandler<OtapPdata>) -> Result<Vec<Sent>, Error> {
        let waiting: Vec<Key> = self.waiting.values().copied().collect();
        let _ = self.send_again(None, effects).await?;
        Ok(waiting.into_iter().filter_map(|key| self.sent.take(key)).collect())
    }

    /// Sends an input on as it is; its subscribers hear of its outcome.
    pub(super) async fn pass(&self, pdata: OtapPdata, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        match &self.ports.main {
            Some(port) => effects.send_message_with_source_node_to(port.clone(), pdata).await,
            None => effects.send_message_with_source_node(pdata).await,
        }
        .map_err(Error::from)
    }

    /// Checks that the ports which are asked for are connected.
    ///
    /// # Errors
    /// Says which one is not, and how to connect it.
    pub(super) fn check_ports(&self, effects: &EffectHandler<OtapPdata>) -> Result<(), String> {
        let connected = effects.connected_ports();
        for port in self.ports.late.iter().chain(&self.ports.main) {
            if !connected.contains(port) {
                return Err(format!(
                    "output `{port}` is not connected, expected a connection `from: <node>[\"{port}\"]` with `late: side_output`"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits double up to the longest, and end with the time given.
    #[test]
    fn waits_double_up_to_a_bound() {
        let seconds = Duration::from_secs;
        let retry = Retry { initial_interval: seconds(1), max_interval: seconds(5), max_elapsed: seconds(60) };
        let waits: Vec<_> = (0..5).map(|attempts| retry.wait(attempts, seconds(0))).collect();
        assert_eq!(waits, [1, 2, 4, 5, 5].map(|wait| Some(seconds(wait))));
        assert_eq!(retry.wait(u32::MAX, seconds(55)), Some(seconds(5)));
        assert_eq!(retry.wait(3, seconds(56)), None);
    }
}
