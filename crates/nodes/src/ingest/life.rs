//! The life of a receiver: control messages, batches, drain.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use otel_arrow_dfe_engine::control::NodeControlMsg;
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::receiver::{ControlChannel, EffectHandler};
use otel_arrow_dfe_engine::terminal_state::TerminalState;
use otel_arrow_dfe_otap::pdata::OtapPdata;
use otel_arrow_dfe_telemetry::metrics::MetricSetSnapshot;
use otel_arrow_dfe_telemetry::reporter::MetricsReporter;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::emit::{Receipt, emit};
use super::intake::{Intake, Pending};
use crate::drain::Input;

/// How long before the deadline a drain gives up waiting for acknowledgements, so that the nodes behind get their turn.
const DRAIN_MARGIN: Duration = Duration::from_secs(2);

/// How often freed batches are looked for while the limit of what is in flight holds the next one back.
const FREED_CHECK: Duration = Duration::from_millis(2);

/// The metrics of a receiver.
pub(crate) trait Report {
    /// Brings the metric sets up to date and hands them to `reporter`.
    fn report(&mut self, reporter: &mut MetricsReporter);
    /// The last values.
    fn last(&mut self) -> Vec<MetricSetSnapshot>;
}

type Emission = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// Runs until the engine ends the receiver. `sources` are the tasks that fill `intake`; they end when `intake.stop` is
/// cancelled, after taking in what has arrived already. Drain then waits for the acknowledgement of all that was sent,
/// up to the deadline; `input` tells the others in the pipeline how far this is.
///
/// Once the sources are told to stop, what is in flight holds nothing back any more: little is left to come.
pub(crate) async fn run<P: Pending>(
    mut control: ControlChannel<OtapPdata>,
    effects: EffectHandler<OtapPdata>,
    intake: Rc<Intake<P>>,
    mut sources: JoinSet<()>,
    mut report: impl Report,
    mut input: Input,
) -> Result<TerminalState, Error> {
    let mut emission: Option<Emission> = None;
    let mut drain: Option<Instant> = None;
    loop {
        let no_more_input = intake.stop.is_cancelled() && sources.is_empty();
        let ready = emission.is_none() && is_due(&intake, no_more_input);
        let held_back = ready && !intake.stop.is_cancelled() && !intake.may_follow();
        if ready && !held_back {
            emission = Some(Box::pin(emit(intake.take(), Rc::clone(&intake), effects.clone())));
        }
        let all_sent = no_more_input && emission.is_none() && intake.is_empty();
        let settled = all_sent && intake.books().outstanding() == 0;
        if all_sent {
            input.end(settled);
        }
        if let Some(deadline) = drain.filter(|deadline| settled || Instant::now() >= *deadline) {
            effects.notify_receiver_drained().await?;
            return Ok(TerminalState::new(deadline.into_std(), report.last()));
        }
        let flush = intake.due().filter(|_| emission.is_none() && !held_back);
        tokio::select! {
            biased;
            message = control.recv() => match message {
                Ok(NodeControlMsg::CollectTelemetry { mut metrics_reporter }) => report.report(&mut metrics_reporter),
                Ok(NodeControlMsg::MemoryPressureChanged { update }) => intake.apply_pressure(update),
                Ok(NodeControlMsg::Ack(ack)) => {
                    let receipt = Receipt::of(&ack.unwind.route.calldata);
                    intake.books_mut().acknowledged += receipt.items;
                    intake.in_flight.settle(receipt.key);
                }
                Ok(NodeControlMsg::Nack(nack)) => {
                    let receipt = Receipt::of(&nack.unwind.route.calldata);
                    intake.books_mut().refused += receipt.items;
                    intake.in_flight.settle(receipt.key);
                    otel_arrow_dfe_telemetry::otel_warn!(
                        "ingest.batch_refused",
                        items = receipt.items,
                        reason = nack.reason.as_str(),
                        message = "a batch was refused downstream and is not sent again; place processor:retry before the exporter to have it retried"
                    );
                }
                Ok(NodeControlMsg::DrainIngress { deadline, .. }) => {
                    intake.stop.cancel();
                    drain = Some(Instant::from_std(deadline.checked_sub(DRAIN_MARGIN).unwrap_or(deadline)));
                }
                Ok(NodeControlMsg::Shutdown { deadline, .. }) => {
                    return Ok(TerminalState::new(deadline, report.last()));
                }
                Ok(_) => {}
                Err(error) => return Err(Error::ChannelRecvError(error)),
            },
            done = poll_optional(&mut emission) => {
                emission = None;
                done?;
            }
            ended = sources.join_next(), if !sources.is_empty() => {
                // The engine starts the pipeline anew.
                if let Some(Err(error)) = ended {
                    return Err(Error::InternalError { message: format!("a source of the receiver failed: {error}") });
                }
            }
            () = intake.arrival() => {}
            () = sleep_until(flush.unwrap_or_else(Instant::now)), if flush.is_some() => {}
            () = input.stop_requested(), if !intake.stop.is_cancelled() => intake.stop.cancel(),
            () = sleep_until(drain.unwrap_or_else(Instant::now)), if drain.is_some() => {}
            () = sleep(FREED_CHECK), if held_back => {}
        }
    }
}

fn is_due<P: Pending>(intake: &Intake<P>, no_more_input: bool) -> bool {
    !intake.is_empty() && (no_more_input || intake.is_full() || intake.due().is_some_and(|due| due <= Instant::now()))
}

async fn poll_optional(emission: &mut Option<Emission>) -> Result<(), Error> {
    match emission {
        Some(emission) => emission.as_mut().await,
        None => std::future::pending().await,
    }
}
