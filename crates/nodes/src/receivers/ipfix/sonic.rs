//! SONiC's high-frequency telemetry: payloads on their way into the batch, and the sessions that explain them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use catchment_columns::sonic::session_rows;
use catchment_ipfix::SessionKey;
use catchment_ipfix::sonic::{SessionRow, SonicCounters, SonicLimits, SonicRecords, SonicRejection, SonicSessions};

use super::pending::IpfixPending;
use super::sources::SessionUpdate;
use crate::ingest::{Intake, Recent, Seldom, UnderPressure};

/// Senders that are told apart.
const SENDERS: usize = 4_096;

/// The telemetry sessions of this receiver.
pub(super) struct Sonic {
    sessions: RefCell<SonicSessions>,
    /// Numbers of the senders over UDP and of files.
    senders: RefCell<Recent<SessionKey, u64>>,
    numbers: Cell<u64>,
    /// The sessions that each file has given.
    of_file: RefCell<HashMap<PathBuf, Vec<String>>>,
    told: Seldom,
    session_told: Seldom,
}

impl Sonic {
    pub(super) fn new() -> Self {
        Self {
            sessions: RefCell::new(SonicSessions::new(SonicLimits { max_sources: SENDERS, ..SonicLimits::default() })),
            senders: RefCell::new(Recent::new(SENDERS)),
            numbers: Cell::new(0),
            of_file: RefCell::default(),
            told: Seldom::default(),
            session_told: Seldom::default(),
        }
    }

    fn sender(&self, key: SessionKey) -> u64 {
        self.senders.borrow_mut().get(&key, || {
            self.numbers.set(self.numbers.get() + 1);
            self.numbers.get()
        })
    }

    /// Admits a payload and puts its records into the batch.
    pub(super) fn take(
        &self,
        intake: &Intake<IpfixPending>,
        key: SessionKey,
        payload: &[u8],
        time_unix_nano: i64,
        under: UnderPressure,
    ) {
        let source = self.sender(key);
        let mut sessions = self.sessions.borrow_mut();
        if intake.sheds(under) {
            let mut points = 0;
            let count = |set: SonicRecords<'_>| points += (set.records * set.template.counters().len()) as u64;
            let counted = sessions.admit(source, payload, time_unix_nano, count);
            self.tell(counted.err().as_ref(), key);
            intake.shed(points);
            return;
        }
        let mut rejected = None;
        let push = |pending: &mut IpfixPending| {
            let Some(batch) = pending.sonic() else { return 0 };
            let before = batch.points();
            rejected = sessions.admit(source, payload, time_unix_nano, |set| batch.push(source, set)).err();
            (batch.points() - before) as u64
        };
        let _ = intake.add(0, UnderPressure::Keep, push);
        self.tell(rejected.as_ref(), key);
    }

    fn tell(&self, rejection: Option<&SonicRejection>, key: SessionKey) {
        if let Some(rejection) = rejection.filter(|_| self.told.now()) {
            let source = key.peer().map_or_else(|| "local".to_owned(), |peer| peer.to_string());
            otel_warn!(
                "ipfix_receiver.sonic.payload_rejected",
                source = source.as_str(),
                reason = %rejection,
                message = "the whole payload is dropped: none of its points can be trusted"
            );
        }
    }

    /// The end of a connection.
    pub(super) fn close(&self, key: SessionKey) {
        let source = self.sender(key);
        self.sessions.borrow_mut().forget_source(source);
    }

    /// Follows a change of the session table.
    pub(super) fn update(&self, update: &SessionUpdate) {
        match update {
            SessionUpdate::Set { key, row } => self.apply(key, row),
            SessionUpdate::Remove { key } => {
                if self.sessions.borrow_mut().remove(key) {
                    otel_info!("ipfix_receiver.sonic.session_removed", session = key.as_str());
                }
            }
        }
    }

    fn apply(&self, key: &str, row: &SessionRow) {
        match self.sessions.borrow_mut().apply(key, row) {
            Ok(applied) => otel_info!("ipfix_receiver.sonic.session", session = key, state = format!("{applied:?}")),
            Err(error) => {
                if self.session_told.now() {
                    otel_warn!(
                        "ipfix_receiver.sonic.session_refused",
                        session = key,
                        error = %error,
                        message = "the session stays as it was"
                    );
                }
            }
        }
    }

    /// Takes the content of a session file; sessions that it had before and has no more are removed.
    pub(super) fn file(&self, path: &Path, content: Option<&[u8]>) {
        let rows = match content.map(session_rows).transpose() {
            Ok(rows) => rows.unwrap_or_default(),
            Err(error) => {
                otel_warn!(
                    "ipfix_receiver.sonic.session_file_refused",
                    path = %path.display(),
                    error = %error,
                    message = "the sessions of this file stay as they were"
                );
                return;
            }
        };
        let keys: Vec<String> = rows.iter().map(|(key, _)| key.clone()).collect();
        let before = self.of_file.borrow_mut().insert(path.to_owned(), keys.clone()).unwrap_or_default();
        for key in before.into_iter().filter(|key| !keys.contains(key)) {
            self.update(&SessionUpdate::Remove { key });
        }
        for (key, row) in &rows {
            self.apply(key, row);
        }
    }

    pub(super) fn counters(&self) -> SonicCounters {
        *self.sessions.borrow().counters()
    }

    pub(super) fn sessions(&self) -> usize {
        self.sessions.borrow().sessions()
    }
}
