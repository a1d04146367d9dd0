//! How the processor takes messages in.

use catchment_columns::quantile::carrier::{self, CarrierError, SketchMessage};
use catchment_quantile::exchange::{MessageId, Refusal, Verdict};
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_engine::ConsumerEffectHandlerExtension;
use otel_arrow_dfe_engine::control::{AckMsg, NackMsg};
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::processor::EffectHandler;
use otel_arrow_dfe_engine::processor::FlowMetricHook;
use otel_arrow_dfe_otap::accessory::slots::Key;
use otel_arrow_dfe_otap::pdata::{OtapPdata, PdataDelivery, PdataEffectHandlerExtension};
use otel_arrow_dfe_pdata_codec::PdataEncoding;

use super::super::content::{Content, ContentError, identity};
use super::MergeProcessor;

/// Why what a source has sent does not count.
const REPLACED: &str = "a newer start of the source has delivered for the window and counts instead";

/// What became of the messages of one input.
#[derive(Debug, Default)]
struct Taken {
    /// Some are merged, repeats or late.
    settled: bool,
    /// Some must be sent again later.
    again: Option<String>,
    /// Some can never be merged.
    refused: Option<String>,
}

impl MergeProcessor {
    pub(super) async fn input(
        &mut self,
        mut pdata: OtapPdata,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        let items = pdata.num_items() as u64;
        if pdata.signal_type() != SignalType::Metrics {
            self.metrics.totals.forwarded += items;
            return self.transit.outputs.pass(pdata, effects).await;
        }
        pdata.complete_processor_without_output(effects);
        let encoded = pdata.payload_ref().encoded_view();
        if encoded.is_some_and(|encoded| *encoded.encoding() == PdataEncoding::OTLP) {
            let (delivery, payload) = pdata.into_work();
            let request = payload.encoded_bytes().cloned().unwrap_or_default();
            return self.take(delivery, carrier::decode_otlp(&request), items, effects).await;
        }
        let (delivery, records) = match effects.prepare_otap_work(pdata).await {
            Ok(work) => work,
            Err(error) => {
                self.metrics.totals.malformed += items;
                let (error, pdata) = error.into_parts();
                return effects.notify_nack(NackMsg::new_permanent(error.to_string(), pdata)).await;
            }
        };
        match carrier::decode(&records) {
            Ok(messages) => self.take(delivery, messages, items, effects).await,
            Err(error) => {
                self.metrics.totals.malformed += items;
                let pdata = delivery.into_pdata();
                effects.notify_nack(NackMsg::new_permanent(error.to_string(), pdata)).await
            }
        }
    }

    /// Takes the messages of one input in.
    async fn take(
        &mut self,
        delivery: PdataDelivery,
        messages: Vec<Result<SketchMessage, CarrierError>>,
        items: u64,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        let (held, unheld) = self.transit.hold(delivery);
        let now = (self.clock)();
        let mut taken = Taken::default();
        self.metrics.totals.malformed += items.saturating_sub(messages.len() as u64);
        for message in messages {
            self.offer(message, held, now, &mut taken);
        }
        for content in self.collector.take_replaced() {
            otel_warn!("quantile_processor.message_refused", reason = REPLACED);
            self.transit.refuse(content.inputs, REPLACED, effects).await?;
        }
        if let Some(reason) = &taken.refused {
            otel_warn!("quantile_processor.message_refused", reason = reason.as_str());
        }
        // Sent again, those that are in already are repeats.
        let nack = match taken {
            Taken { again: Some(reason), .. } => Some((reason, false)),
            Taken { settled: false, refused: Some(reason), .. } => Some((reason, true)),
            _ => None,
        };
        let pdata = match (held, nack.is_some()) {
            (Some(key), true) => self.transit.holds.fail(key),
            (Some(key), false) => self.transit.holds.release(key),
            (None, _) => unheld,
        };
        if let Some(pdata) = pdata {
            match nack {
                None => effects.notify_ack(AckMsg::new(pdata)).await?,
                Some((reason, true)) => effects.notify_nack(NackMsg::new_permanent(reason, pdata)).await?,
                Some((reason, false)) => effects.notify_nack(NackMsg::new(reason, pdata)).await?,
            }
        }
        let complete = self.collector.take_complete(now);
        self.send(complete, effects).await?;
        self.transit.start_ticking(effects);
        Ok(())
    }

    fn offer(&mut self, message: Result<SketchMessage, CarrierError>, held: Option<Key>, now: i64, taken: &mut Taken) {
        let identified = message.map_err(|error| error.to_string()).and_then(|message| {
            let id = identity(&message).ok_or_else(|| format!("sketch of `{}` has no source", message.metric))?;
            Ok((id, message))
        });
        let (id, message) = match identified {
            Ok(identified) => identified,
            Err(reason) => {
                self.metrics.totals.malformed += 1;
                taken.refused = Some(reason);
                return;
            }
        };
        let (k, seed) = (self.config.k, self.config.seed);
        let verdict = self.collector.offer(&id, now, Content::default, |content| {
            content.merge(&message, k, seed)?;
            match held {
                Some(held) if content.inputs.last() == Some(&held) => {}
                Some(held) => content.inputs.extend(self.transit.holds.share(&[held])),
                None => content.is_accepted = true,
            }
            Ok(())
        });
        match verdict {
            Verdict::Merged => taken.settled = true,
            Verdict::Duplicate | Verdict::Late => {
                taken.settled = true;
                if let Some(held) = held {
                    self.wait_for_window(&id, held);
                }
            }
            Verdict::Replaced => taken.refused = Some(format!("sketch of `{}`: {REPLACED}", message.metric)),
            Verdict::Refused(refusal @ Refusal::Full { .. }) => taken.again = Some(refusal.to_string()),
            Verdict::Refused(refusal) => {
                let refusal: Refusal<ContentError> = refusal;
                taken.refused = Some(format!("sketch of `{}`: {refusal}", message.metric));
            }
        }
    }

    /// Makes an input wait for the window of a message that has come before, or too late: its sender forgets the message
    /// once it is acknowledged, and so must not hear before what it knows is safe.
    fn wait_for_window(&mut self, id: &MessageId, held: Key) {
        if let Some(content) = self.collector.content_mut(id) {
            if content.inputs.last() != Some(&held) {
                content.inputs.extend(self.transit.holds.share(&[held]));
            }
            return;
        }
        for output in self.settling.get(&(id.metric.clone(), id.window)).into_iter().flatten() {
            self.transit.tie(*output, held);
        }
    }
}
