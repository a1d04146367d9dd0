//! Datagrams and messages from a file.

use std::fs::File;
use std::rc::Rc;

use catchment_capture::Reader;

use super::shared::Shared;
use crate::ingest::{self, ReplayConfig, Replayed};
use crate::time::now_unix_nano;

/// Replays the file until its end or until the intake stops.
pub(super) async fn run(replay: ReplayConfig, reader: Reader<File>, shared: Rc<Shared>) {
    let path = replay.path.display().to_string();
    let stop = shared.intake.stop.clone();
    let line_limit = catchment_capture::DEFAULT_MAX_LINE_BYTES;
    ingest::replay(replay, reader, line_limit, stop, async |replayed| match replayed {
        Replayed::Packet(packet) => {
            shared.intake.let_on().await;
            shared.take_replayed(&packet.payload, packet.source, now_unix_nano());
        }
        Replayed::Pass(counts) => {
            shared.totals.borrow_mut().replay_skipped += counts.skipped_total();
            otel_info!(
                "ipfix_receiver.replay.end_of_file",
                path = path.as_str(),
                packets = counts.packets,
                skipped = format!("{:?}", counts.skipped)
            );
        }
        Replayed::Failed(error) => {
            shared.totals.borrow_mut().receive_errors += 1;
            otel_error!("ipfix_receiver.replay.failed", error = error.as_str());
        }
    })
    .await;
}
