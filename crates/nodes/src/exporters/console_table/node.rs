//! The exporter.

use std::io::IsTerminal;

use async_trait::async_trait;
use catchment_columns::{OtapArrowRecords, json};
use otel_arrow_dfe_engine::ConsumerEffectHandlerExtension;
use otel_arrow_dfe_engine::control::{AckMsg, NackMsg, NodeControlMsg};
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::exporter::{EffectHandler, Exporter};
use otel_arrow_dfe_engine::message::{ExporterInbox, Message};
use otel_arrow_dfe_engine::terminal_state::TerminalState;
use otel_arrow_dfe_otap::pdata::{OtapPdata, PdataEffectHandlerExtension};
use otel_arrow_dfe_telemetry::output_service::{Frame, OutputService};

use super::config::{Config, Format};
use super::metrics::Metrics;
use super::render;
use super::rows::Blocks;

/// The console table exporter.
pub(super) struct ConsoleTableExporter {
    tables: bool,
    metrics: Metrics,
}

impl ConsoleTableExporter {
    pub(super) fn new(config: &Config, metrics: Metrics) -> Self {
        let tables = match config.format {
            Format::Auto => std::io::stdout().is_terminal(),
            Format::Table => true,
            Format::Lines => false,
        };
        Self { tables, metrics }
    }

    /// The text, and the number of points in it.
    fn text(&self, mut records: OtapArrowRecords) -> Result<(String, u64), String> {
        if !matches!(records, OtapArrowRecords::Metrics(_)) {
            return Err("console_table prints gauges and sums, not logs or traces".to_owned());
        }
        records.decode_transport_optimized_ids().map_err(|error| error.to_string())?;
        let (mut blocks, mut points) = (Blocks::default(), 0);
        let read = json::objects(&records, |point| {
            blocks.add(&point);
            points += 1;
        });
        read.map_err(|error| error.to_string())?;
        let blocks = blocks.finish();
        Ok((if self.tables { render::tables(&blocks) } else { render::lines(&blocks) }, points))
    }

    async fn export(&mut self, mut pdata: OtapPdata, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        let items = pdata.num_items() as u64;
        let (delivery, records) = match effects.prepare_otap_work(pdata).await {
            Ok(work) => work,
            Err(error) => {
                self.metrics.count(0, items);
                let (error, pdata) = error.into_parts();
                return effects.notify_nack(NackMsg::new_permanent(error.to_string(), pdata)).await;
            }
        };
        let written = match self.text(records) {
            Ok((text, points)) => OutputService::stdout()
                .submit(Frame::new(text.into_bytes()))
                .await
                .map(|()| points)
                .map_err(|error| format!("cannot write to standard output: {error}")),
            Err(reason) => Err(reason),
        };
        match written {
            // Histograms and the like have no place in the table; they are counted as refused.
            Ok(points) => {
                self.metrics.count(points, items.saturating_sub(points));
                effects.notify_ack(AckMsg::new(delivery.into_pdata())).await
            }
            Err(reason) => {
                self.metrics.count(0, items);
                otel_warn!("console_table_exporter.refused", reason = reason.as_str());
                effects.notify_nack(NackMsg::new_permanent(reason, delivery.into_pdata())).await
            }
        }
    }
}

#[async_trait(?Send)]
impl Exporter<OtapPdata> for ConsoleTableExporter {
    async fn start(
        mut self: Box<Self>,
        mut inbox: ExporterInbox<OtapPdata>,
        effects: EffectHandler<OtapPdata>,
    ) -> Result<TerminalState, Error> {
        loop {
            match inbox.recv().await? {
                Message::PData(pdata) => self.export(pdata, &effects).await?,
                Message::Control(NodeControlMsg::CollectTelemetry { mut metrics_reporter }) => {
                    self.metrics.report(&mut metrics_reporter);
                }
                Message::Control(NodeControlMsg::Shutdown { deadline, .. }) => {
                    return Ok(TerminalState::new(deadline, [self.metrics.snapshot()]));
                }
                Message::Control(_) => {}
            }
        }
    }
}
