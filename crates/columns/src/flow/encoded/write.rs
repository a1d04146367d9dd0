//! From a batch to a payload.

use std::net::SocketAddr;
use std::sync::Arc;

use catchment_ipfix::{FieldSpec, Kind, Namespace, SubTemplates, Template, TimeEncoding, Version, netflow_v5_template};
use catchment_sampling::Threshold;
use hashbrown::{HashMap, HashSet};
use minicbor::Encoder;

use super::{FIELD_BYTES, FLOWS, ITEMS, NONE, SCOPE, SETTINGS, SetEntry, VERSION, VERSION_SAMPLED, facts};
use crate::ParentIds;
use crate::flow::batch::{FlowBatch, Set};
use crate::flow::facts::{Carried, Facts};
use crate::flow::mapping::FlowMapping;

pub(super) type Written = Result<(), minicbor::encode::Error<std::convert::Infallible>>;

/// The data sets of `batch`, to become log records as `mapping` says.
#[must_use]
pub fn encode(batch: &FlowBatch, mapping: &FlowMapping) -> Vec<u8> {
    let mut tables = Tables::default();
    let mut entries = Vec::with_capacity(batch.sets.len() * SetEntry::BYTES);
    let mut contents = Vec::with_capacity(batch.arena.len());
    for set in &batch.sets {
        let bytes = batch.arena.get(set.bytes.clone()).unwrap_or_default();
        contents.extend_from_slice(bytes);
        tables.entry(set, bytes, mapping).append_to(&mut entries);
    }
    let mut out = Encoder::new(Vec::with_capacity(entries.len() + contents.len() + 256));
    // Writing to a vector cannot fail.
    let _ = write(&mut out, &tables, batch, mapping, &entries, &contents);
    out.into_writer()
}

/// What sets share, each thing once.
#[derive(Default)]
struct Tables<'b> {
    templates: Vec<&'b Arc<Template>>,
    template_numbers: HashMap<usize, u32>,
    groups: Vec<Vec<u32>>,
    group_numbers: HashMap<Vec<u32>, u32>,
    facts: Vec<(&'b Facts, Carried)>,
    fact_numbers: HashMap<usize, usize>,
    /// Which templates have been looked through for elements that the facts of a number describe.
    described: HashSet<(usize, usize)>,
    exporters: Vec<SocketAddr>,
    exporter_numbers: HashMap<SocketAddr, u32>,
}

impl<'b> Tables<'b> {
    fn entry(&mut self, set: &'b Set, bytes: &[u8], mapping: &FlowMapping) -> SetEntry {
        let message = &set.message;
        SetEntry {
            template: self.template(&set.template),
            group: self.group(&set.sub_templates),
            facts: self.facts(set, bytes, mapping),
            exporter: set.receipt.exporter.map_or(NONE, |exporter| {
                *self.exporter_numbers.entry(exporter).or_insert_with(|| {
                    self.exporters.push(exporter);
                    narrow(self.exporters.len() - 1)
                })
            }),
            records: narrow(set.records),
            bytes: narrow(bytes.len()),
            received_unix_nano: set.receipt.time_unix_nano,
            exported_unix_nano: message.export_time_unix_nano,
            sequence: message.sequence,
            domain: message.domain,
            uptime_ms: message.uptime_ms,
            sampling: message.sampling,
            version: match message.version {
                Version::V5 => 5,
                Version::V9 => 9,
                Version::Ipfix => 10,
            },
        }
    }

    fn template(&mut self, template: &'b Arc<Template>) -> u32 {
        *self.template_numbers.entry(Arc::as_ptr(template).addr()).or_insert_with(|| {
            self.templates.push(template);
            narrow(self.templates.len() - 1)
        })
    }

    fn group(&mut self, templates: &'b SubTemplates) -> u32 {
        let group: Vec<u32> = templates.iter().map(|template| self.template(template)).collect();
        if group.is_empty() {
            return NONE;
        }
        *self.group_numbers.entry(group).or_insert_with_key(|group| {
            self.groups.push(group.clone());
            narrow(self.groups.len() - 1)
        })
    }

    fn facts(&mut self, set: &'b Set, bytes: &[u8], mapping: &FlowMapping) -> u32 {
        if set.facts.is_none() || !mapping.looks_up() {
            return NONE;
        }
        let number = *self.fact_numbers.entry(facts::identity(&set.facts)).or_insert_with(|| {
            self.facts.push((&set.facts, Carried::default()));
            self.facts.len() - 1
        });
        if let Some((_, carried)) = self.facts.get_mut(number) {
            facts::collect(carried, set, bytes, mapping);
            for template in std::iter::once(&set.template).chain(set.sub_templates.iter()) {
                if self.described.insert((number, Arc::as_ptr(template).addr())) {
                    facts::describe(carried, template, &set.facts);
                }
            }
        }
        narrow(number)
    }
}

fn write(
    out: &mut Encoder<Vec<u8>>,
    tables: &Tables<'_>,
    batch: &FlowBatch,
    mapping: &FlowMapping,
    entries: &[u8],
    contents: &[u8],
) -> Written {
    let length = |items: usize| u64::try_from(items).unwrap_or(u64::MAX);
    let is_sampled = batch.sets.iter().any(|set| set.threshold != Threshold::KEEP_ALL);
    let _ = match is_sampled {
        true => out.array(ITEMS + 1)?.u8(VERSION_SAMPLED)?,
        false => out.array(ITEMS)?.u8(VERSION)?,
    };
    let _ = out.u8(FLOWS)?.u32(narrow(batch.records))?;
    let _ = out.array(SETTINGS)?;
    let settings = [
        mapping.schema as u8,
        mapping.enumerations as u8,
        mapping.times as u8,
        mapping.sampling as u8,
        mapping.options as u8,
        mapping.u64_overflow as u8,
        u8::from(mapping.list_semantics),
        mapping.biflow as u8,
        mapping.exporter_at as u8,
        u8::from(mapping.per_exporter),
        match mapping.time_encoding {
            TimeEncoding::Auto => 0,
            TimeEncoding::Ntp => 1,
            TimeEncoding::UnixNano => 2,
        },
        u8::from(mapping.parent_ids == ParentIds::Transport),
    ];
    settings.iter().try_for_each(|setting| out.u8(*setting).map(|_| ()))?;
    let _ = out.array(length(tables.templates.len()))?;
    for template in &tables.templates {
        let _ = out.array(3)?.u16(template.id())?.u8(template_kind(template))?.bytes(&fields(template))?;
    }
    let _ = out.array(length(tables.groups.len()))?;
    for group in &tables.groups {
        let _ = out.array(length(group.len()))?;
        group.iter().try_for_each(|template| out.u32(*template).map(|_| ()))?;
    }
    let _ = out.array(length(tables.facts.len()))?;
    tables.facts.iter().try_for_each(|(_, carried)| facts::write(out, carried))?;
    let _ = out.array(length(tables.exporters.len()))?;
    for exporter in &tables.exporters {
        let _ = out.array(2)?.str(&exporter.ip().to_string())?.u16(exporter.port())?;
    }
    let _ = out.bytes(entries)?.bytes(contents)?;
    if is_sampled {
        let thresholds: Vec<u8> = batch.sets.iter().flat_map(|set| set.threshold.get().to_le_bytes()).collect();
        let _ = out.bytes(&thresholds)?;
    }
    Ok(())
}

fn template_kind(template: &Arc<Template>) -> u8 {
    match template.kind() {
        _ if **template == **netflow_v5_template() => 2,
        Kind::Flow => 0,
        Kind::Options => 1,
    }
}

fn fields(template: &Template) -> Vec<u8> {
    let mut out = Vec::with_capacity(template.fields().len() * FIELD_BYTES);
    for FieldSpec { id, enterprise, length, scope, namespace, .. } in template.fields() {
        let namespace = match namespace {
            Namespace::Ipfix => 0,
            Namespace::NetflowV9 => 1,
            Namespace::NetflowV9Scope => 2,
        };
        out.push(if *scope { namespace | SCOPE } else { namespace });
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&enterprise.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
    }
    out
}

/// Batches are bounded far below 4 GiB.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
