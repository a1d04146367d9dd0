//! Messages from a file.

use std::fs::File;
use std::rc::Rc;

use catchment_capture::{Reader, Transport as Origin};
use catchment_columns::syslog::{Receipt, Transport};
use catchment_syslog::framing::datagram;

use super::senders::{Senders, Zones};
use super::shared::Shared;
use crate::ingest::{self, ReplayConfig, Replayed, UnderPressure};
use crate::time::now_unix_nano;

/// Replays the file until its end or until the intake stops.
pub(super) async fn run(
    replay: ReplayConfig,
    reader: Reader<File>,
    max_message_size: usize,
    zones: Zones,
    shared: Rc<Shared>,
) {
    let (datagrams, lines) = (Senders::new(zones.clone(), Transport::Udp), Senders::new(zones, Transport::File));
    let path = replay.path.display().to_string();
    let stop = shared.intake.stop.clone();
    ingest::replay(replay, reader, max_message_size, stop, async |replayed| match replayed {
        Replayed::Packet(packet) => {
            shared.intake.let_on().await;
            let senders = match packet.transport {
                Origin::Udp => &datagrams,
                Origin::File => &lines,
            };
            let (sender, source) = (packet.source.map(|peer| peer.ip()), || senders.source(packet.source));
            let receipt = Receipt { time_unix_nano: now_unix_nano(), truncated: packet.truncated };
            shared.take(datagram(&packet.payload), sender, source, receipt, UnderPressure::Keep);
        }
        Replayed::Pass(counts) => {
            shared.counters.borrow_mut().replay_skipped += counts.skipped_total();
            otel_info!(
                "syslog_receiver.replay.end_of_file",
                path = path.as_str(),
                packets = counts.packets,
                skipped = format!("{:?}", counts.skipped)
            );
        }
        Replayed::Failed(error) => {
            shared.counters.borrow_mut().receive_errors += 1;
            otel_error!("syslog_receiver.replay.failed", error = error.as_str());
        }
    })
    .await;
}
