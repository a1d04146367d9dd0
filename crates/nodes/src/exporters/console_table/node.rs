//! The exporter.

use std::io::IsTerminal;
use std::time::Duration;

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
use tokio::time::{Instant, sleep_until};

use super::config::{Config, Format};
use super::metrics::Metrics;
use super::render;
use super::rows::Blocks;

/// Points gathered at most; more are written at once.
const MAX_GATHERED: u64 = 20_000;

/// The console table exporter. Batches wait, unacknowledged, until the rows of their windows are written.
pub(super) struct ConsoleTableExporter {
    tables: bool,
    gather: Duration,
    metrics: Metrics,
    blocks: Blocks,
    waiting: Vec<Waiting>,
    due: Option<Instant>,
}

/// A batch whose points are in the blocks.
struct Waiting {
    pdata: OtapPdata,
    items: u64,
    points: u64,
}

impl ConsoleTableExporter {
    pub(super) fn new(config: &Config, metrics: Metrics) -> Self {
        let tables = match config.format {
            Format::Auto => std::io::stdout().is_terminal(),
            Format::Table => true,
            Format::Lines => false,
        };
        let gather = if tables { config.gather } else { Duration::ZERO };
        Self { tables, gather, metrics, blocks: Blocks::default(), waiting: Vec::new(), due: None }
    }

    /// Puts the points of a batch into the blocks; gives the number of those that can be shown.
    fn gather(&mut self, mut records: OtapArrowRecords) -> Result<u64, String> {
        if !matches!(records, OtapArrowRecords::Metrics(_)) {
            return Err("console_table prints gauges and sums, not logs or traces".to_owned());
        }
        records.decode_transport_optimized_ids().map_err(|error| error.to_string())?;
        let mut points = Vec::new();
        json::objects(&records, |point| points.push(point)).map_err(|error| error.to_string())?;
        Ok(points.iter().filter(|point| self.blocks.add(point)).count() as u64)
    }

    async fn receive(&mut self, mut pdata: OtapPdata, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        let items = pdata.num_items() as u64;
        let (delivery, records) = match effects.prepare_otap_work(pdata).await {
            Ok(work) => work,
            Err(error) => {
                let (error, pdata) = error.into_parts();
                return self.refuse(pdata, items, &error.to_string(), effects).await;
            }
        };
        match self.gather(records) {
            Ok(points) => {
                self.waiting.push(Waiting { pdata: delivery.into_pdata(), items, points });
                let _ = self.due.get_or_insert_with(|| Instant::now() + self.gather);
                let gathered: u64 = self.waiting.iter().map(|waiting| waiting.points).sum();
                if gathered >= MAX_GATHERED { self.write(effects).await } else { Ok(()) }
            }
            Err(reason) => self.refuse(delivery.into_pdata(), items, &reason, effects).await,
        }
    }

    async fn refuse(
        &mut self,
        pdata: OtapPdata,
        items: u64,
        reason: &str,
        effects: &EffectHandler<OtapPdata>,
    ) -> Result<(), Error> {
        self.metrics.count(0, items);
        otel_warn!("console_table_exporter.refused", reason = reason);
        effects.notify_nack(NackMsg::new_permanent(reason, pdata)).await
    }

    /// Writes what has been gathered and settles the batches it came from.
    async fn write(&mut self, effects: &EffectHandler<OtapPdata>) -> Result<(), Error> {
        self.due = None;
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let blocks = std::mem::take(&mut self.blocks).finish();
        let text = if self.tables { render::tables(&blocks) } else { render::lines(&blocks) };
        let written = OutputService::stdout().submit(Frame::new(text.into_bytes())).await;
        for Waiting { pdata, items, points } in waiting {
            match &written {
                Ok(()) => {
                    // Histograms and values that are no numbers have no place in the table; they are counted as refused.
                    self.metrics.count(points, items.saturating_sub(points));
                    effects.notify_ack(AckMsg::new(pdata)).await?;
                }
                Err(error) => {
                    let reason = format!("cannot write to standard output: {error}");
                    self.refuse(pdata, items, &reason, effects).await?;
                }
            }
        }
        Ok(())
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
            let due = self.due;
            let message = tokio::select! {
                biased;
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => None,
                message = inbox.recv() => Some(message?),
            };
            match message {
                None => self.write(&effects).await?,
                Some(Message::PData(pdata)) => self.receive(pdata, &effects).await?,
                Some(Message::Control(NodeControlMsg::CollectTelemetry { mut metrics_reporter })) => {
                    self.metrics.report(&mut metrics_reporter);
                }
                Some(Message::Control(NodeControlMsg::Shutdown { deadline, .. })) => {
                    self.write(&effects).await?;
                    return Ok(TerminalState::new(deadline, [self.metrics.snapshot()]));
                }
                Some(Message::Control(_)) => {}
            }
        }
    }
}
