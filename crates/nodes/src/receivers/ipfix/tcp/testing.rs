//! A sink that admits what comes, and a listener's state without an engine.

use std::collections::HashMap;

use catchment_ipfix::{Admitted, Counters, Session, Transport};
use serde_json::{Value, json};

use super::*;
use crate::ingest::testing::Fake;

/// Two templates, data and options data, as softflowd wrote them to its connection.
pub(in super::super) const STREAM: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../ipfix/tests/data/local-softflowd-ipfix-tcp-stream.ipfix"));

/// Admits what comes, a session for each connection.
pub(in super::super) struct Recorder {
    pub(in super::super) intake: Intake<Fake>,
    rates: Rates,
    pub(in super::super) sessions: RefCell<HashMap<Connection, Session>>,
    messages: RefCell<Vec<(Connection, Vec<u8>)>>,
    admitted: RefCell<Admitted>,
    pub(in super::super) closed: RefCell<Vec<Connection>>,
}

impl Recorder {
    fn new(max_messages: usize) -> Rc<Self> {
        Rc::new(Self {
            intake: Fake::intake(max_messages),
            rates: Rates::new(None, None),
            sessions: RefCell::default(),
            messages: RefCell::default(),
            admitted: RefCell::default(),
            closed: RefCell::default(),
        })
    }

    pub(in super::super) fn count(&self) -> usize {
        self.messages.borrow().len()
    }

    /// What came, back to back.
    pub(in super::super) fn bytes(&self) -> Vec<u8> {
        self.messages.borrow().iter().flat_map(|(_, message)| message.clone()).collect()
    }

    /// Takes out what has been admitted since the last time.
    pub(in super::super) fn counters(&self) -> Counters {
        let counters = self.admitted.take().counters;
        self.messages.borrow_mut().clear();
        counters
    }
}

impl MessageSink for Recorder {
    type Pending = Fake;

    fn intake(&self) -> &Intake<Fake> {
        &self.intake
    }

    fn rates(&self) -> &Rates {
        &self.rates
    }

    fn take_message(&self, connection: Connection, message: &[u8], time_unix_nano: i64) {
        assert!(time_unix_nano > 0);
        self.messages.borrow_mut().push((connection, message.to_vec()));
        let mut sessions = self.sessions.borrow_mut();
        let session = sessions.entry(connection).or_insert_with(|| Session::new(Transport::Stream, Default::default()));
        session.admit(message, &mut self.admitted.borrow_mut());
        Fake::push(&self.intake);
    }

    fn connection_closed(&self, connection: Connection) {
        let _ = self.sessions.borrow_mut().remove(&connection);
        self.closed.borrow_mut().push(connection);
    }
}

/// `more` goes beside the address.
pub(in super::super) fn config(more: Value) -> TcpConfig {
    let mut value = json!({"listening_addr": "127.0.0.1:0"});
    for (key, more) in more.as_object().expect("map") {
        value[key] = more.clone();
    }
    let config: TcpConfig = config::parse(&value).expect("valid");
    config.check().expect("valid");
    config
}

/// A listener's state.
pub(in super::super) async fn tcp(more: Value, max_messages: usize) -> Rc<Tcp<Recorder>> {
    let config = config(more);
    let tls = match &config.tls {
        Some(tls) => Some(Tls::load(tls).await.expect("certificates")),
        None => None,
    };
    Rc::new(Tcp::new(&config, tls, Recorder::new(max_messages), Rc::default()))
}
