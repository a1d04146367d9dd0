//! How the processor takes an input in.

use catchment_columns::quantile::{Fate, OtlpSignal, ValueSource};
use catchment_quantile::window::WindowSpec;
use otel_arrow_dfe_config::SignalType;
use otel_arrow_dfe_engine::ConsumerEffectHandlerExtension;
use otel_arrow_dfe_engine::control::{AckMsg, NackMsg};
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::processor::EffectHandler;
use otel_arrow_dfe_engine::processor::FlowMetricHook;
use otel_arrow_dfe_otap::accessory::slots::Key;
use otel_arrow_dfe_otap::pdata::{Context, OtapPdata, PdataDelivery, PdataEffectHandlerExtension};
use otel_arrow_dfe_pdata_codec::{OtapPayload, PdataEncoding};

use super::super::forward::{self, Forward, Late};
use super::super::measure::{Input, OpenWindow};
use super::super::outputs::{Kind, Output};
use super::QuantileProcessor;

impl QuantileProcessor {
    fn wants(&self, signal: SignalType) -> bool {
        self.measures.iter().any(|measure| match measure.config.query.source {
            ValueSource::LogAttribute { .. } => signal == SignalType::Logs,
            ValueSource::Metric { .. } => signal == SignalType::Metrics,
        })
    }

    /// Whether parts of inputs are sent on.
    fn goes_on(&self) -> bool {
        self.config.forward != Forward::None || self.config.late == Late::SideOutput
    }

    pub(super) async fn input(
        &mut self,
        mut pdata: OtapPdata,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        let signal = pdata.signal_type();
        if !self.wants(signal) {
            let items = pdata.num_items() as u64;
            self.metrics.totals.received += items;
            self.metrics.totals.forwarded += items;
            return self.transit.outputs.pass(pdata, effects).await;
        }
        pdata.complete_processor_without_output(effects);
        // OTLP is read as it is: a conversion costs several times what all else does.
        let encoded = pdata.payload_ref().encoded_view();
        if encoded.is_some_and(|encoded| *encoded.encoding() == PdataEncoding::OTLP) {
            let (delivery, payload) = pdata.into_work();
            let request = payload.encoded_bytes().cloned().unwrap_or_default();
            let signal = if signal == SignalType::Logs { OtlpSignal::Logs } else { OtlpSignal::Metrics };
            return self.take(delivery, payload, Input::Otlp(signal, &request), effects).await;
        }
        let items = pdata.num_items() as u64;
        let (delivery, mut records) = match effects.prepare_otap_work(pdata).await {
            Ok(work) => work,
            Err(error) => {
                self.metrics.totals.received += items;
                self.metrics.totals.malformed += items;
                let (error, pdata) = error.into_parts();
                return effects.notify_nack(NackMsg::new_permanent(error.to_string(), pdata)).await;
            }
        };
        // The observations are read from either form, rows are only taken out of plain ones.
        if self.goes_on()
            && let Err(error) = records.decode_transport_optimized_ids()
        {
            self.metrics.totals.received += items;
            self.metrics.totals.malformed += items;
            let pdata = delivery.into_pdata();
            return effects.notify_nack(NackMsg::new_permanent(error.to_string(), pdata)).await;
        }
        self.take(delivery, OtapPayload::empty(signal), Input::Records(&records), effects).await
    }

    /// Takes one input in; `payload` is what it came as, if that was not records.
    async fn take(
        &mut self,
        delivery: PdataDelivery,
        payload: OtapPayload,
        input: Input<'_>,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        // What goes on keeps the headers that came with it.
        let context = if self.goes_on() { delivery.context().clone_detached() } else { Context::default() };
        let (held, unheld) = self.transit.hold(delivery);
        let refused = self.observe(input, payload, held, context, effects).await?;
        let held = held.into_iter().collect();
        match (refused, unheld) {
            (None, None) => self.transit.release(held, effects).await?,
            (None, Some(pdata)) => effects.notify_ack(AckMsg::new(pdata)).await?,
            (Some(reason), None) => self.transit.refuse(held, &reason, effects).await?,
            (Some(reason), Some(pdata)) => effects.notify_nack(NackMsg::new_permanent(reason, pdata)).await?,
        }
        self.transit.start_ticking(effects);
        Ok(())
    }

    /// Offers an input to every measure, sends on what is to go on, then the windows that closed. Gives the reason if
    /// the input is refused: no measure could read it, or it would not find room.
    async fn observe(
        &mut self,
        input: Input<'_>,
        mut payload: OtapPayload,
        held: Option<Key>,
        context: Context,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<Option<String>, Error> {
        let now = (self.clock)();
        let mut failure = None;
        let mut readable = Vec::new();
        for (index, measure) in self.measures.iter_mut().enumerate() {
            match measure.read(input, now) {
                Ok(()) => readable.push(index),
                Err(error) => failure = Some(error),
            }
        }
        if let Some(reason) = self.find_full(&readable, now) {
            return Ok(Some(reason));
        }
        let mut fates: Vec<Fate> = Vec::new();
        let mut other_points = 0;
        let mut closed = Vec::new();
        let mut inputs = Vec::new();
        let mut empty = Vec::new();
        for index in readable {
            let offered = self.measures[index].take(now);
            other_points = other_points.max(offered.other_points);
            if fates.is_empty() {
                fates = offered.fates;
            } else {
                for (fate, other) in fates.iter_mut().zip(offered.fates) {
                    *fate = (*fate).max(other);
                }
            }
            self.metrics.totals.overflow_folded += offered.overflow_folded;
            if let Some(held) = held {
                for start_ns in offered.starts {
                    self.transit.holds.window_takes(OpenWindow::Tumbling { measure: index, start_ns }, held);
                }
            }
            if let WindowSpec::Count(size) = self.config.window.spec {
                for (series, observations) in offered.counted {
                    let window = OpenWindow::Count { measure: index, series };
                    inputs.extend(self.transit.holds.count_takes(window, held, observations, size));
                }
            }
            self.note_empty(index, offered.empty, &mut empty);
            closed.extend(offered.closed.into_iter().map(|window| (index, window)));
        }
        let judged = fates.len() as u64;
        self.metrics.totals.received += judged;
        let forwarding = match &failure {
            None => self.send_on(input, &fates, other_points, held, context, effects).await?,
            Some(_) => Forward::None,
        };
        self.metrics.totals.count_all(&fates, forwarding);
        if let Some(error) = &failure {
            let items = match input {
                Input::Records(records) => records.num_items() as u64,
                Input::Otlp(..) => payload.num_items() as u64,
            };
            let rest = items.saturating_sub(judged);
            self.metrics.totals.received += rest;
            self.metrics.totals.malformed += rest;
            otel_warn!("quantile_processor.malformed_batch", error = error.as_str());
        } else {
            self.metrics.totals.count_others(other_points, forwarding);
        }
        self.send(closed, empty, inputs, effects).await?;
        // What some measure has used is not refused: it would be counted again.
        Ok(failure.filter(|_| judged == 0))
    }

    /// With `when_full: fail`, why an input does not find room, if it does not. It is counted then.
    fn find_full(&mut self, readable: &[usize], now: i64) -> Option<String> {
        if !self.config.fail_when_full {
            return None;
        }
        let full = readable.iter().find(|index| self.measures[**index].would_fill(now))?;
        let name = &self.measures[*full].config.name;
        let reason = format!(
            "a series of measure `{name}` would have more than {} values in a window (max_values_per_window)",
            self.config.max_values
        );
        let items = readable.iter().map(|index| self.measures[*index].items()).max().unwrap_or(0);
        self.metrics.totals.received += items;
        self.metrics.totals.no_room += items;
        otel_warn!("quantile_processor.input_refused", items = items, reason = reason.as_str());
        Some(reason)
    }

    /// Sends on what of an input goes on unchanged; the input waits for that too. Gives what the main output got.
    async fn send_on(
        &mut self,
        input: Input<'_>,
        fates: &[Fate],
        other_points: u64,
        held: Option<Key>,
        context: Context,
        effects: &mut EffectHandler<OtapPdata>,
    ) -> Result<Forward, Error> {
        let mut forwarding = self.config.forward;
        let mut parts = Vec::new();
        match forward::onward(forwarding, input, fates, other_points) {
            Ok(part) => parts.extend(part.map(|part| (Kind::Forwarded, part))),
            Err(error) => {
                forwarding = Forward::None;
                otel_error!("quantile_processor.forward_failed", error = error.as_str());
            }
        }
        if self.config.late == Late::SideOutput && fates.contains(&Fate::Late) {
            match forward::late(input, fates) {
                Ok(part) => parts.extend(part.map(|part| (Kind::Late, part))),
                Err(error) => otel_error!("quantile_processor.forward_failed", error = error.as_str()),
            }
        }
        for (kind, (payload, items)) in parts {
            if kind == Kind::Late {
                self.metrics.totals.late_sent += items;
            }
            let inputs = held.map(|held| self.transit.holds.share(&[held])).unwrap_or_default();
            let output = Output { kind, items, payload, context: context.clone_detached() };
            let (_, untied) = self.transit.outputs.send(output, inputs, effects).await?;
            self.transit.release(untied, effects).await?;
        }
        Ok(forwarding)
    }
}
