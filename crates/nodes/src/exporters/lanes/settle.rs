//! What became of a batch, in the words of the engine.

use std::sync::Arc;

use catchment_delivery::lane::{Refusal, Verdict};
use otel_arrow_dfe_engine::ConsumerEffectHandlerExtension;
use otel_arrow_dfe_engine::control::{AckMsg, NackCause, NackMsg};
use otel_arrow_dfe_engine::error::Error;
use otel_arrow_dfe_engine::local::exporter::EffectHandler;
use otel_arrow_dfe_otap::pdata::OtapPdata;

use super::intake::Token;
use super::metrics::Own;
use crate::ingest::Seldom;

/// Answers to the engine.
pub(super) struct Settle {
    effects: EffectHandler<OtapPdata>,
    exhausted_is_permanent: bool,
    rejected_told: Seldom,
    warned_told: Seldom,
    refused_told: Seldom,
}

impl Settle {
    pub(super) fn new(effects: EffectHandler<OtapPdata>, exhausted_is_permanent: bool) -> Self {
        Self {
            effects,
            exhausted_is_permanent,
            rejected_told: Seldom::default(),
            warned_told: Seldom::default(),
            refused_told: Seldom::default(),
        }
    }

    pub(super) const fn effects(&self) -> &EffectHandler<OtapPdata> {
        &self.effects
    }

    /// Acknowledges a batch, or gives it back.
    pub(super) async fn verdict(&self, token: Token, verdict: Verdict, own: &mut Own) -> Result<(), Error> {
        let message = || verdict.message.clone().unwrap_or_else(|| Arc::from("no reason given"));
        let Some(refusal) = verdict.refusal else {
            if verdict.rejected > 0 {
                if self.rejected_told.now() {
                    otel_warn!(
                        "lanes_exporter.items_rejected",
                        items = verdict.rejected,
                        reason = &*message(),
                        message = "items were rejected and are lost; the rest of their request was taken"
                    );
                }
            } else if verdict.message.is_some() && self.warned_told.now() {
                otel_warn!("lanes_exporter.server_warned", reason = &*message());
            }
            own.acked += 1;
            return self.effects.notify_ack(AckMsg::new(token.into_pdata())).await;
        };
        let permanent = refusal.is_permanent() || (refusal == Refusal::Expired && self.exhausted_is_permanent);
        let cause = match refusal {
            Refusal::Permanent | Refusal::Unencodable => NackCause::Refused,
            Refusal::QueueFull | Refusal::Dropped => NackCause::RouteFull,
            Refusal::Shutdown | Refusal::Ambiguous => NackCause::NodeShutdown,
            Refusal::Expired | Refusal::LaneFailed => NackCause::Unspecified,
        };
        let what = match refusal {
            Refusal::Permanent => "refused by the server",
            Refusal::Unencodable => "cannot be encoded",
            Refusal::Dropped => "dropped for newer batches",
            Refusal::Expired => "not taken within retry.max_elapsed",
            Refusal::QueueFull => "its lane is full",
            Refusal::Shutdown => "not sent before the end of the node",
            Refusal::LaneFailed => "its lane failed",
            Refusal::Ambiguous => "not answered before the end of the node",
        };
        let reason = match &verdict.message {
            Some(message) => format!("{what}: {message}"),
            None => what.to_owned(),
        };
        self.refuse(token.into_pdata(), &reason, permanent, cause, own).await
    }

    /// Gives a batch back.
    pub(super) async fn refuse(
        &self,
        pdata: OtapPdata,
        reason: &str,
        permanent: bool,
        cause: NackCause,
        own: &mut Own,
    ) -> Result<(), Error> {
        if self.refused_told.now() {
            otel_warn!("lanes_exporter.batch_refused", reason = reason, permanent = permanent);
        }
        let nack = if permanent {
            own.refused += 1;
            NackMsg::new_permanent_with_cause(reason, pdata, cause)
        } else {
            own.nacked += 1;
            NackMsg::new_with_cause(reason, pdata, cause)
        };
        self.effects.notify_nack(nack).await
    }
}
