//! What admitting datagrams gives: messages, data sets, problems, counts.

use std::ops::Range;
use std::sync::Arc;

use crate::context::DecodeContext;
use crate::counters::Counters;
use crate::knowledge::Knowledge;
use crate::list::SubTemplates;
use crate::message::MessageInfo;
use crate::problem::{Fault, Problem};
use crate::records::Records;
use crate::template::{Kind, Template};

/// Result of [`Session::admit`](crate::Session::admit), to be used again for the next datagram.
#[derive(Debug, Default)]
pub struct Admitted {
    /// The messages, in the order of the wire.
    pub messages: Vec<MessageInfo>,
    /// The data sets that hold records, in the order of the wire.
    pub sets: Vec<DataSet>,
    /// The data sets whose template is not known, in the order of the wire.
    pub unknown_sets: Vec<UnknownSet>,
    /// Data sets of earlier datagrams whose templates have arrived, in the order in which they were received. They come
    /// before `sets`.
    pub released: Vec<Released>,
    /// What was wrong; no more than [`Limits::max_problems`](crate::Limits::max_problems) of a datagram, while
    /// [`Counters::problems`] counts all.
    pub problems: Vec<Problem>,
    /// Counts over everything admitted since the last [`Admitted::clear`].
    pub counters: Counters,
}

impl Admitted {
    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.begin_next();
        self.counters = Counters::default();
    }

    /// Forgets what was admitted, but not the counters, which go on as sums.
    pub fn begin_next(&mut self) {
        self.messages.clear();
        self.sets.clear();
        self.unknown_sets.clear();
        self.released.clear();
        self.problems.clear();
    }

    /// Counts a problem, and keeps it while there are fewer than `limit`.
    pub(crate) fn report(&mut self, limit: usize, offset: usize, fault: Fault, discarded: bool) {
        let kind = fault.kind();
        if let Some(count) = self.counters.problems.get_mut(kind as usize) {
            *count += 1;
        }
        if self.problems.len() < limit {
            self.problems.push(Problem { offset, kind, fault, discarded });
        }
    }
}

/// A data set with at least one record.
#[derive(Debug, Clone)]
pub struct DataSet {
    /// Index of its message in [`Admitted::messages`].
    pub message: usize,
    /// The template that its records follow.
    pub template: Arc<Template>,
    /// The templates that lists in its records follow.
    pub sub_templates: SubTemplates,
    /// What options data of its exporter has told until then; `None` while that is nothing. Where options data and
    /// other sets take turns many times in one datagram, the later ones see no more than an earlier one did.
    pub knowledge: Option<Arc<Knowledge>>,
    /// Where its records are in the datagram: whole records only, without set header and padding.
    pub range: Range<usize>,
    /// Number of records.
    pub records: usize,
    /// Bytes of padding after the records.
    pub padding: usize,
}

impl DataSet {
    /// Whether the records are flows or options data.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.template.kind()
    }

    /// The context to decode the records with: that of their message, with the start of the exporter where only options
    /// data tells it.
    #[must_use]
    pub fn context(&self, message: &MessageInfo) -> DecodeContext {
        let system_init_unix_nano = self.knowledge.as_ref().and_then(|knowledge| knowledge.system_init_unix_nano());
        let mut context = message.context();
        context.system_init_unix_nano = system_init_unix_nano;
        context
    }

    /// The records; `datagram` is the one that was admitted.
    #[must_use]
    pub fn records<'t, 'a>(&'t self, datagram: &'a [u8]) -> Records<'t, 'a> {
        Records::new(&self.template, datagram.get(self.range.clone()).unwrap_or_default())
    }
}

/// A data set whose template is not known (yet).
///
/// Keep its bytes and its message, and give both to [`Session::admit_set`](crate::Session::admit_set) when templates
/// have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSet {
    /// Index of its message in [`Admitted::messages`].
    pub message: usize,
    /// Id of the template that is missing.
    pub template_id: u16,
    /// Where its content is in the datagram, without the set header.
    pub range: Range<usize>,
    /// Whether a [`Collector`](crate::Collector) holds a copy until the template arrives.
    pub held: bool,
}

/// A data set that was held until its template arrived.
#[derive(Debug, Clone)]
pub struct Released {
    /// The content of the set as it came.
    pub content: Vec<u8>,
    /// The message it came in. Its offset is that in a datagram that is gone.
    pub message: MessageInfo,
    /// When that datagram was received, nanoseconds since 1970, as the caller said.
    pub received_unix_nano: i64,
    /// Its records. The range counts from the start of `content`, and the index of the message means nothing.
    pub set: DataSet,
}

impl Released {
    /// The records.
    #[must_use]
    pub fn records(&self) -> Records<'_, '_> {
        self.set.records(&self.content)
    }
}
