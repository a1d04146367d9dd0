//! Sessions: the state between the messages of one exporter, and the walk over a message.

mod data;
mod limits;
mod lists;
mod sets;
mod store;

use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashSet;

use crate::admitted::Admitted;
use crate::counters::Counters;
use crate::knowledge::{AddressKnowledge, SessionKnowledge, Teller};
use crate::lru::LruMap;
use crate::message::{self, MessageInfo, SET_HEADER_BYTES, Version};
use crate::problem::Fault;
use crate::sequence::{SequenceCheck, Tracker};
use crate::template::{Kind, MIN_TEMPLATE_ID, Template};

use sets::Scratch;
use store::TemplateStore;

pub use limits::{Limits, Transport};
pub(crate) use store::{Provisional, TEMPLATE_WEIGHT, TemplateKey};

/// State of one transport session: one TCP connection, or one pair of UDP addresses and ports.
///
/// Templates are kept by protocol version, observation domain and template id. What options data tells (names,
/// sampling rates, see [`Knowledge`](crate::Knowledge)) is kept as well and goes with the data sets after it.
///
/// # Malformed messages
///
/// A fault in the framing (a set or a template that does not fit, a value of variable length that reaches past its
/// set) ends the message: what came before it is kept, whole records of the same set included, templates that were
/// learned stay, the rest is discarded, and one [`Problem`](crate::Problem) says so. The state of the session is never
/// reset. A template that fits but makes no sense costs only itself.
#[derive(Debug)]
pub struct Session {
    transport: Transport,
    limits: Limits,
    templates: TemplateStore,
    /// By the port that the messages come from, as sessions of one address may share their templates.
    sequences: LruMap<(u16, Version, u32), Tracker>,
    port: u16,
    knowledge: SessionKnowledge,
    /// Templates from before a restart, to be used until the exporter sends its own.
    provisional: Option<Arc<Provisional>>,
    /// Those of them that the exporter has made unknown since.
    not_provisional: HashSet<TemplateKey>,
    /// Most that all templates together may weigh, in fields, besides [`Limits::max_total_fields`].
    allowed_weight: usize,
    clock: Duration,
    scratch: Scratch,
}

/// The content of a set, and where it belongs.
#[derive(Debug, Clone, Copy)]
struct Content<'d> {
    datagram: &'d [u8],
    /// Where it starts in the datagram, after the set header.
    start: usize,
    end: usize,
    /// Index of the message.
    message: usize,
    version: Version,
    domain: u32,
}

impl<'d> Content<'d> {
    fn bytes(&self) -> &'d [u8] {
        self.datagram.get(self.start..self.end).unwrap_or_default()
    }

    fn key(&self, id: u16) -> TemplateKey {
        TemplateKey { version: self.version, domain: self.domain, id }
    }
}

/// What a walk over the sets of a message found.
struct Walk {
    /// Where the walk ended; before the end of the message only after a fault.
    end: usize,
    /// Number of data records; `None` when some could not be counted.
    records: Option<usize>,
}

impl Session {
    /// A session without templates.
    #[must_use]
    pub fn new(transport: Transport, limits: Limits) -> Self {
        let teller = Teller { session: 1, established: true };
        let knowledge = SessionKnowledge::new(Arc::default(), teller, limits.max_facts);
        Self::with_knowledge(transport, limits, knowledge)
    }

    /// A session that shares what it learns with others of its address.
    pub(crate) fn sharing(transport: Transport, limits: Limits, shared: Arc<AddressKnowledge>, teller: Teller) -> Self {
        let knowledge = SessionKnowledge::new(shared, teller, limits.max_facts);
        Self::with_knowledge(transport, limits, knowledge)
    }

    fn with_knowledge(transport: Transport, limits: Limits, knowledge: SessionKnowledge) -> Self {
        Self {
            transport,
            limits,
            templates: TemplateStore::default(),
            sequences: LruMap::new(),
            port: 0,
            knowledge,
            provisional: None,
            not_provisional: HashSet::default(),
            allowed_weight: usize::MAX,
            clock: Duration::ZERO,
            scratch: Scratch::default(),
        }
    }

    /// Tells the session the time, as a duration since any fixed moment. Only the lifetime of templates needs it.
    pub fn set_clock(&mut self, now: Duration) {
        self.clock = now;
    }

    /// Tells which port the next messages come from, so that each port has sequence numbers of its own.
    pub(crate) fn set_port(&mut self, port: u16) {
        self.port = port;
    }

    /// Bounds all templates together and all facts together, from now on and besides the limits of the session. What is
    /// there already stays.
    pub(crate) fn allow(&mut self, weight: usize, facts: usize) {
        self.allowed_weight = weight;
        self.knowledge.allow(facts.min(self.limits.max_facts));
    }

    /// Makes the session count as real: what it tells comes before what others do, and it may have more domains.
    pub(crate) fn establish(&mut self, max_domains: usize) {
        self.limits.max_domains = max_domains;
        self.knowledge.establish();
    }

    pub(crate) fn set_provisional(&mut self, templates: Option<Arc<Provisional>>) {
        self.provisional = templates;
    }

    /// What all templates take, in fields.
    pub(crate) fn template_weight(&self) -> usize {
        self.templates.weight()
    }

    /// Number of templates.
    pub(crate) fn template_count(&self) -> usize {
        self.templates.len()
    }

    /// Number of facts that this session's options data has told.
    pub(crate) fn facts(&self) -> usize {
        self.knowledge.facts()
    }

    /// Whether a template is known now.
    pub(crate) fn knows(&self, key: &TemplateKey) -> bool {
        self.templates.contains(key)
    }

    /// The templates known, in no order: version, domain, template.
    pub fn templates(&self) -> impl Iterator<Item = (Version, u32, &Arc<Template>)> {
        self.templates.iter().map(|(key, template)| (key.version, key.domain, template))
    }

    /// Puts in a template that was learned elsewhere, such as before a restart. Gives the one that it replaces.
    ///
    /// Limits on the number of templates and fields hold; the fields of the template itself are not checked again.
    pub fn insert_template(&mut self, version: Version, domain: u32, template: Arc<Template>) -> Option<Arc<Template>> {
        let key = TemplateKey { version, domain, id: template.id() };
        let replaced = self.templates.insert(key, template, self.clock);
        let _: u64 = self.templates.shrink(&self.limits);
        replaced
    }

    /// Admits one datagram, or one message of a stream.
    ///
    /// Adds to `out`; offsets and ranges count from the start of `datagram`. IPFIX messages may follow each other in a
    /// datagram; what follows and is no message is counted as trailing bytes.
    pub fn admit(&mut self, datagram: &[u8], out: &mut Admitted) {
        out.counters.datagrams += 1;
        Counters::add_bytes(&mut out.counters.bytes, datagram.len());
        self.knowledge.begin_datagram();
        let mut at = 0;
        loop {
            match message::parse_header(datagram, at) {
                Ok(info) => at = self.admit_message(datagram, info, out),
                Err(fault) => {
                    out.counters.rejected_messages += 1;
                    Counters::add_bytes(&mut out.counters.discarded_bytes, datagram.len() - at);
                    out.report(self.limits.max_problems, at, fault, true);
                    return;
                }
            }
            if !message::starts_message(datagram, at) {
                break;
            }
        }
        let length = datagram.len().saturating_sub(at);
        if length > 0 {
            Counters::add_bytes(&mut out.counters.trailing_bytes, length);
            self.report(at, Fault::TrailingBytes { length }, out);
        }
    }

    /// Admits the content of one data set that had no template when its message came, see
    /// [`UnknownSet`](crate::UnknownSet). Ranges count from the start of `content`.
    ///
    /// Gives whether the template is known now; if not, nothing is added to `out` but the count of an expired
    /// template. Sequence numbers are not looked at again.
    pub fn admit_set(&mut self, message: &MessageInfo, template_id: u16, content: &[u8], out: &mut Admitted) -> bool {
        let set = Content {
            datagram: content,
            start: 0,
            end: content.len(),
            message: out.messages.len(),
            version: message.version,
            domain: message.domain,
        };
        let Some(template) = self.find_template(set.key(template_id), out) else {
            return false;
        };
        out.messages.push(MessageInfo { sequence_check: SequenceCheck::Unchecked, ..*message });
        Counters::add_bytes(&mut out.counters.bytes, content.len());
        if let Err((at, fault)) = self.data_records(template, &set, out) {
            self.discard(set.end, set.message, at, fault, out);
        }
        true
    }

    /// Walks one message and gives where the next one would start.
    fn admit_message(&mut self, datagram: &[u8], info: MessageInfo, out: &mut Admitted) -> usize {
        out.counters.messages += 1;
        Counters::add_bytes(&mut out.counters.header_bytes, info.body_offset() - info.offset);
        let index = out.messages.len();
        out.messages.push(info);
        let (end, count) = match info.version {
            Version::V5 => self.netflow_v5(datagram, &info, index, out),
            Version::V9 => {
                let walk = self.walk_sets(datagram, &info, index, out);
                (walk.end, Some(1))
            }
            Version::Ipfix => {
                let walk = self.walk_sets(datagram, &info, index, out);
                (walk.end, walk.records.and_then(|records| u32::try_from(records).ok()))
            }
        };
        let check = self.check_sequence(&info, count, out);
        if let Some(message) = out.messages.get_mut(index) {
            message.length = end - info.offset;
            message.sequence_check = check;
        }
        end
    }

    /// Walks the sets of a message.
    fn walk_sets(&mut self, datagram: &[u8], info: &MessageInfo, message: usize, out: &mut Admitted) -> Walk {
        let end = info.offset + info.length;
        let mut at = info.body_offset();
        let mut records = Some(0);
        while at < end {
            if info.version == Version::V9 && is_tail_padding(datagram.get(at..end).unwrap_or_default()) {
                Counters::add_bytes(&mut out.counters.padding_bytes, end - at);
                break;
            }
            let set = message::set_header(datagram, at, end).map_err(|fault| (at, fault)).and_then(|(id, length)| {
                Counters::add_bytes(&mut out.counters.header_bytes, SET_HEADER_BYTES);
                let content = Content {
                    datagram,
                    start: at + SET_HEADER_BYTES,
                    end: at + length,
                    message,
                    version: info.version,
                    domain: info.domain,
                };
                at += length;
                self.set(id, &content, out)
            });
            match set {
                Ok(counted) => records = records.zip(counted).map(|(sum, more)| sum + more),
                Err((fault_at, fault)) => {
                    self.discard(end, message, fault_at, fault, out);
                    return Walk { end, records: None };
                }
            }
        }
        Walk { end, records }
    }

    /// One set; gives its number of data records, `None` when they could not be counted.
    fn set(&mut self, id: u16, content: &Content<'_>, out: &mut Admitted) -> Result<Option<usize>, (usize, Fault)> {
        if id >= MIN_TEMPLATE_ID {
            return self.data_set(id, content, out);
        }
        let kind = match (content.version, id) {
            (Version::Ipfix, 2) | (Version::V9, 0) => Kind::Flow,
            (Version::Ipfix, 3) | (Version::V9, 1) => Kind::Options,
            _ => {
                Counters::add_bytes(&mut out.counters.skipped_bytes, content.bytes().len());
                self.report(content.start - SET_HEADER_BYTES, Fault::ReservedSet { id }, out);
                return Ok(Some(0));
            }
        };
        self.template_set(kind, content, out).map(|()| Some(0))
    }

    /// Reports a problem that costs nothing but its own place.
    fn report(&self, offset: usize, fault: Fault, out: &mut Admitted) {
        out.report(self.limits.max_problems, offset, fault, false);
    }

    /// Gives up the rest of a message.
    fn discard(&self, end: usize, message: usize, at: usize, fault: Fault, out: &mut Admitted) {
        out.counters.incomplete_messages += 1;
        Counters::add_bytes(&mut out.counters.discarded_bytes, end - at);
        if let Some(info) = out.messages.get_mut(message) {
            info.complete = false;
        }
        out.report(self.limits.max_problems, at, fault, true);
    }

    fn find_template(&mut self, key: TemplateKey, out: &mut Admitted) -> Option<Arc<Template>> {
        let expiry = self.limits.template_lifetime.map(|lifetime| (self.clock, lifetime));
        let (template, expired) = self.templates.find(key, expiry);
        out.counters.templates_expired += u64::from(expired);
        template.or_else(|| self.find_provisional(key, out))
    }

    /// Takes over a template from before a restart.
    fn find_provisional(&mut self, key: TemplateKey, out: &mut Admitted) -> Option<Arc<Template>> {
        let (template, sent) = self.provisional.as_ref()?.get(&key)?;
        let too_old = |lifetime| self.clock.saturating_sub(sent) > lifetime;
        if self.limits.template_lifetime.is_some_and(too_old) || self.not_provisional.contains(&key) {
            return None;
        }
        let fields = template.fields().len();
        if !self.templates.make_room(&key, fields, self.allowed_weight, &mut out.counters.templates_evicted) {
            return None;
        }
        let _: Option<Arc<Template>> = self.templates.insert(key, Arc::clone(&template), sent);
        out.counters.templates_evicted += self.templates.shrink(&self.limits);
        out.counters.templates_provisional += 1;
        Some(template)
    }

    /// Forgets a template because its id does not mean that any more; gives whether it was known.
    fn forget_template(&mut self, key: TemplateKey) -> bool {
        if self.provisional.as_ref().is_some_and(|templates| templates.get(&key).is_some()) {
            let _: bool = self.not_provisional.insert(key);
        }
        self.templates.remove(key)
    }

    fn check_sequence(&mut self, info: &MessageInfo, count: Option<u32>, out: &mut Admitted) -> SequenceCheck {
        let key = (self.port, info.version, info.domain);
        let check = if let Some(tracker) = self.sequences.get_mut(&key) {
            tracker.observe(info.sequence, count, info.uptime_ms)
        } else {
            let mut tracker = Tracker::default();
            let check = tracker.observe(info.sequence, count, info.uptime_ms);
            let _: Option<Tracker> = self.sequences.insert(key, tracker);
            if self.sequences.len() > self.limits.max_domains {
                let _: Option<((u16, Version, u32), Tracker)> = self.sequences.pop_oldest();
                out.counters.domains_evicted += 1;
            }
            check
        };
        let counters = &mut out.counters;
        match (check, info.version) {
            (SequenceCheck::Gap(lost), Version::Ipfix) => counters.lost_records += u64::from(lost),
            (SequenceCheck::Gap(lost), Version::V9) => counters.lost_packets += u64::from(lost),
            (SequenceCheck::Gap(lost), Version::V5) => counters.lost_flows += u64::from(lost),
            (SequenceCheck::Late(_), _) => counters.late_messages += 1,
            (SequenceCheck::Restart, _) => counters.sequence_restarts += 1,
            (SequenceCheck::First | SequenceCheck::InOrder | SequenceCheck::Unchecked, _) => {}
        }
        check
    }
}

/// Whether what is left of a NetFlow v9 packet is padding: too short for a set, or a header and more of only zeros.
/// An empty template set cannot be meant, its length would be 4.
fn is_tail_padding(rest: &[u8]) -> bool {
    rest.len() < SET_HEADER_BYTES || (rest.starts_with(&[0; SET_HEADER_BYTES]) && rest.iter().all(|&byte| byte == 0))
}

#[cfg(test)]
mod tests;
