//! Inputs that wait and outputs that are under way: which input is acknowledged or refused by the outcome of which outputs.

use std::time::Instant;

use otel_arrow_dfe_engine::control::{AckMsg, NackCause, NackMsg};
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::processor::EffectHandler;
use otel_arrow_dfe_engine::{ConsumerEffectHandlerExtension, control::CallData};
use otel_arrow_dfe_otap::accessory::slots::Key;
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata, PdataDelivery};

use super::config::Ack;
use super::holds::Holds;
use super::node::{TICK, TICK_INTERVAL};
use super::output::Batch;
use super::outputs::{Kind, Output, Outputs, Ports, Refused, Retry, Sent, UNKNOWN};

/// What has come in and not been settled, and what has gone out and has no outcome.
pub(super) struct Transit {
    pub(super) holds: Holds,
    pub(super) outputs: Outputs,
    ack: Ack,
    ticking: bool,
}

/// What became of a batch of results.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Emitted {
    /// Points sent.
    pub(super) points: u64,
    /// The output, if it has an outcome to wait for.
    pub(super) output: Option<Key>,
}

impl Transit {
    /// Room for `max` inputs, and for as many outputs.
    pub(super) fn new(max: usize, ack: Ack, retry: Option<Retry>, ports: Ports) -> Self {
        Self { holds: Holds::new(max), outputs: Outputs::new(max, retry, ports), ack, ticking: false }
    }

    /// Whether another input may come.
    pub(super) fn has_room(&self) -> bool {
        self.holds.has_room() && (self.ack == Ack::OnAccept || self.outputs.has_room())
    }

    /// Holds an input if somebody waits for its outcome; gives it back if not. `accept_pdata` keeps inputs out when there
    /// is no room; what a forced drain still brings is not held.
    pub(super) fn hold(&mut self, delivery: PdataDelivery) -> (Option<Key>, Option<OtapPdata>) {
        let waited_for = self.ack == Ack::OnEmit && delivery.context().needs_completion_tracking();
        let pdata = delivery.into_pdata();
        if !waited_for {
            return (None, Some(pdata));
        }
        match self.holds.hold(pdata) {
            Ok(key) => (Some(key), None),
            Err(pdata) => (None, Some(*pdata)),
        }
    }

    /// Sends a batch of results, tied to the inputs that went into it.
    pub(super) async fn emit(
        &mut self,
        batch: Batch,
        inputs: Vec<Key>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<Emitted, Error> {
        let records = match batch.finish() {
            Ok(Some(records)) => records,
            Ok(None) => {
                self.release(inputs, effects).await?;
                return Ok(Emitted::default());
            }
            Err(error) => {
                otel_error!("quantile_processor.output_failed", error = error.as_str());
                self.refuse(inputs, &error, effects).await?;
                return Ok(Emitted::default());
            }
        };
        let points = records.num_items() as u64;
        let context = Context::with_capacity(1);
        let output = Output { kind: Kind::Results, items: points, payload: records.into(), context };
        let (output, untied) = self.outputs.send(output, inputs, effects).await?;
        self.release(untied, effects).await?;
        Ok(Emitted { points, output })
    }

    /// Makes another input wait for an output, if that is under way.
    pub(super) fn tie(&mut self, output: Key, input: Key) {
        if self.outputs.tie(output, input) {
            let _ = self.holds.share(&[input]);
        }
    }

    /// Takes one claim of each input back; acknowledges those that nothing else claims.
    pub(super) async fn release(&mut self, inputs: Vec<Key>, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        for key in inputs {
            if let Some(held) = self.holds.release(key) {
                effects.notify_ack(AckMsg::new(held)).await?;
            }
        }
        Ok(())
    }

    /// Refuses inputs for good: sending them again would count them twice in windows that are out already.
    pub(super) async fn refuse(
        &mut self,
        inputs: Vec<Key>,
        reason: &str,
        effects: &EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        for key in inputs {
            if let Some(held) = self.holds.fail(key) {
                effects.notify_nack(NackMsg::new_permanent(reason, held)).await?;
            }
        }
        Ok(())
    }

    /// An output was acknowledged.
    pub(super) async fn acknowledged(
        &mut self,
        calldata: &CallData,
        effects: &EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        match self.outputs.acknowledged(calldata) {
            Some(sent) => self.release(sent.inputs, effects).await,
            None => Ok(()),
        }
    }

    /// An output was refused; given back if it is given up.
    pub(super) fn refused(
        &mut self,
        nack: &NackMsg<OtapPdata>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Option<Sent> {
        match self.outputs.refused(&nack.unwind.route.calldata, nack.permanent, Instant::now())? {
            Refused::Finally(sent) => Some(sent),
            Refused::Later => {
                self.start_ticking(effects);
                None
            }
        }
    }

    /// Refuses the inputs of an output that is given up.
    pub(super) async fn give_up(
        &mut self,
        sent: Sent,
        reason: &str,
        effects: &EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        otel_warn!("quantile_processor.output_refused", items = sent.items, reason = reason);
        self.refuse(sent.inputs, reason, effects).await
    }

    /// The node is about to end: whoever sent these inputs is told to try again.
    pub(super) async fn give_back(
        &mut self,
        inputs: Vec<Key>,
        effects: &EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        for input in inputs.into_iter().filter_map(|key| self.holds.fail(key)) {
            effects.notify_nack(NackMsg::new_with_cause(UNKNOWN, input, NackCause::NodeShutdown)).await?;
        }
        Ok(())
    }

    /// The node ends, and outcomes do not reach it any more: whoever waits for one is told to try again.
    pub(super) async fn end(&mut self, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        for input in self.holds.take_all() {
            effects.notify_nack(NackMsg::new_with_cause(UNKNOWN, input, NackCause::NodeShutdown)).await?;
        }
        Ok(())
    }

    /// Asks for the next tick.
    pub(super) fn start_ticking(&mut self, effects: &mut EffectHandler<OtapPdata>) {
        if !self.ticking {
            self.ticking = effects.set_wakeup(TICK, Instant::now() + TICK_INTERVAL).is_ok();
        }
    }

    /// A tick has come: sends again what waits for it. Gives the number of outputs.
    pub(super) async fn ticked(&mut self, when: Instant, effects: &EffectHandler<OtapPdata>) -> Result<u64, Error> {
        self.ticking = false;
        self.outputs.send_again(Some(when.max(Instant::now())), effects).await
    }
}
