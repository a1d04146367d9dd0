//! Data sets, and the records of NetFlow v5.

use std::sync::Arc;

use crate::admitted::{Admitted, DataSet, UnknownSet};
use crate::counters::Counters;
use crate::list::SubTemplates;
use crate::message::{MessageInfo, SET_HEADER_BYTES};
use crate::netflow_v5;
use crate::problem::Fault;
use crate::records::Records;
use crate::session::{Content, Session};
use crate::template::{Kind, Template};

impl Session {
    /// The records of a v5 packet; gives their end, and how far they move the sequence on.
    pub(super) fn netflow_v5(
        &mut self,
        datagram: &[u8],
        info: &MessageInfo,
        message: usize,
        out: &mut Admitted,
    ) -> (usize, Option<u32>) {
        let start = info.body_offset();
        let count = info.header_count.unwrap_or_default();
        let available = (datagram.len() - start) / netflow_v5::RECORD_BYTES;
        let records = available.min(usize::from(count));
        if records < usize::from(count) {
            let fault = Fault::RecordCount { count, available };
            self.report(info.offset, fault, out);
        }
        let end = start + records * netflow_v5::RECORD_BYTES;
        if records > 0 {
            push_data_set(
                out,
                DataSet {
                    message,
                    template: Arc::clone(netflow_v5::netflow_v5_template()),
                    sub_templates: SubTemplates::default(),
                    knowledge: self.knowledge.view(info.domain),
                    range: start..end,
                    records,
                    padding: 0,
                },
            );
        }
        let whole = records == usize::from(count);
        (end, whole.then_some(u32::from(count)))
    }

    pub(super) fn data_set(
        &mut self,
        template_id: u16,
        content: &Content<'_>,
        out: &mut Admitted,
    ) -> Result<Option<usize>, (usize, Fault)> {
        if let Some(template) = self.find_template(content.key(template_id), out) {
            return self.data_records(template, content, out);
        }
        out.counters.unknown_template_sets += 1;
        Counters::add_bytes(&mut out.counters.skipped_bytes, content.bytes().len());
        let fault = Fault::UnknownTemplate { domain: content.domain, template_id };
        self.report(content.start - SET_HEADER_BYTES, fault, out);
        let range = content.start..content.end;
        out.unknown_sets.push(UnknownSet { message: content.message, template_id, range, held: false });
        Ok(None)
    }

    /// Counts the records of a set and gives them out.
    pub(super) fn data_records(
        &mut self,
        template: Arc<Template>,
        content: &Content<'_>,
        out: &mut Admitted,
    ) -> Result<Option<usize>, (usize, Fault)> {
        out.counters.data_sets += 1;
        let (template_id, start) = (template.id(), content.start);
        let bytes = content.bytes();
        if template.min_record_length() == 0 {
            Counters::add_bytes(&mut out.counters.skipped_bytes, bytes.len());
            self.report(start, Fault::EmptyRecords { id: template_id }, out);
            return Ok(None);
        }
        let (records, length, overrun) = match template.fixed_record_length() {
            Some(length) => (bytes.len() / length, bytes.len() / length * length, false),
            None => {
                let mut walk = Records::new(&template, bytes);
                (walk.by_ref().count(), walk.position(), walk.is_overrun())
            }
        };
        let (whole, rest) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
        let padding = if overrun { 0 } else { rest.len() };
        Counters::add_bytes(&mut out.counters.padding_bytes, padding);
        if !overrun && rest.iter().any(|&byte| byte != 0) {
            out.counters.nonzero_padding_sets += 1;
        }
        if records > 0 {
            let sub_templates = self.sub_templates(&template, whole, content, out);
            let knowledge = self.knowledge.view(content.domain);
            self.learn(&template, whole, content, out);
            push_data_set(
                out,
                DataSet {
                    message: content.message,
                    template,
                    sub_templates,
                    knowledge,
                    range: start..start + length,
                    records,
                    padding,
                },
            );
        }
        if overrun {
            let available = rest.len();
            return Err((start + length, Fault::RecordOverrun { template_id, available }));
        }
        Ok(Some(records))
    }
}

impl Session {
    /// Learns from records if they are options data that says something worth knowing.
    fn learn(&mut self, template: &Template, records: &[u8], content: &Content<'_>, out: &mut Admitted) {
        let (Some(plan), Some(message)) = (template.options_plan(), out.messages.get(content.message)) else {
            return;
        };
        let refused = self.knowledge.learn(content.domain, plan, template, records, &message.context());
        out.counters.facts_refused += u64::try_from(refused).unwrap_or(u64::MAX);
    }
}

fn push_data_set(out: &mut Admitted, set: DataSet) {
    let records = u64::try_from(set.records).unwrap_or(u64::MAX);
    match set.kind() {
        Kind::Flow => out.counters.flow_records += records,
        Kind::Options => out.counters.options_records += records,
    }
    Counters::add_bytes(&mut out.counters.record_bytes, set.range.len());
    out.sets.push(set);
}
