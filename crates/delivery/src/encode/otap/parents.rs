//! Whose the rows of a table are: in which order they are sent for it, and ids of parents as the protocol has them.

use arrow::array::{Array as _, ArrayRef, UInt8Array};
use arrow::datatypes::DataType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::{SimpleType, consts, payloads, schema};

use super::arrange::arrange;
use super::idmap::{self, IdMap};
use crate::encode::error::EncodeError;
use crate::encode::ids::{self, Rule, field, rule_of};
use crate::encode::marks::{run_length, same_attributes, same_columns};
use crate::encode::table::Table;

/// Ids of parents that came as differences, of rows that stay where they are and whose parents keep their ids.
#[derive(Debug)]
pub(super) struct Kept {
    differences: ArrayRef,
    /// Which of them are differences.
    marks: Vec<bool>,
}

/// Rows of a table in the order in which they are sent, all if nothing is said, and the new ids of their parents.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) order: Option<Vec<u32>>,
    pub(super) parents: Vec<u32>,
    pub(super) kept: Option<Kept>,
}

/// Which rows are sent in which order. Rows without a parent are left out.
pub(super) fn placed(table: &Table<'_>, fields: &arrow::datatypes::Fields, map: &IdMap) -> Result<Placed, EncodeError> {
    let (parents, marks) = ids::marked_parents(table, field(fields, &[consts::PARENT_ID]))?;
    let mut order: Option<Vec<u32>> = None;
    let is_known = |count: u32| parents.values.iter().fold(true, |known, parent| known & (*parent < count));
    let mut new = match map.identity() {
        Some(count) if parents.nulls.is_none() && is_known(count) => parents.values.into_owned(),
        _ => {
            let mut rows = Vec::with_capacity(parents.values.len());
            let mut new = Vec::with_capacity(parents.values.len());
            for row in 0..parents.values.len() {
                if let Some(old) = parents.get(row) {
                    map.for_each(old, |parent| {
                        rows.push(row as u32);
                        new.push(parent);
                    });
                }
            }
            let is_whole = rows.len() == parents.values.len()
                && rows.iter().enumerate().all(|(place, row)| *row as usize == place);
            order = Some(rows).filter(|_| !is_whole);
            new
        }
    };
    let keeps_ids = map.identity().is_some();
    if matches!(rule_of(table.kind), Rule::Attribute) {
        let (order, parents) = arrange(table, (order, new))?;
        let descends = |marks: &[bool]| {
            let pairs = parents.windows(2).zip(marks.iter().skip(1));
            pairs.fold(false, |descends, (pair, mark)| descends | (mark & (pair[1] < pair[0])))
        };
        let kept = marks.filter(|marks| keeps_ids && order.is_none() && !descends(marks));
        let differences = table.array(consts::PARENT_ID);
        let kept = kept.zip(differences.cloned()).map(|(marks, differences)| Kept { differences, marks });
        return Ok(Placed { order, parents, kept });
    }
    if !new.is_sorted() {
        let mut places: Vec<u32> = (0..new.len() as u32).collect();
        places.sort_by_key(|place| new[*place as usize]);
        new = places.iter().map(|place| new[*place as usize]).collect();
        order = Some(match order {
            Some(order) => places.iter().map(|place| order[*place as usize]).collect(),
            None => places,
        });
    }
    Ok(Placed { order, parents: new, kept: None })
}

/// Ids of parents in the encoding of the table.
pub(super) fn differences<'a>(
    table: ArrowPayloadType,
    mut parents: Vec<u32>,
    kept: Option<Kept>,
    column: impl Fn(&'static str) -> Option<&'a ArrayRef>,
) -> Result<ArrayRef, EncodeError> {
    let missing = |column| EncodeError::MissingColumn { table, column };
    let is_narrow = payloads::get(table)
        .get(consts::PARENT_ID)
        .is_some_and(|field| matches!(field.data_type, schema::DataType::Simple(SimpleType::UInt16)));
    match rule_of(table) {
        Rule::Always => idmap::differences(&mut parents, |_| true),
        Rule::Columns(names) => {
            let marks = same_columns(parents.len(), names.iter().filter_map(|name| column(name)));
            idmap::differences(&mut parents, |row| marks[row]);
        }
        Rule::Attribute => {
            let types = column(consts::ATTRIBUTE_TYPE).and_then(|types| types.as_any().downcast_ref::<UInt8Array>());
            let types = types.ok_or_else(|| missing(consts::ATTRIBUTE_TYPE))?;
            let keys = column(consts::ATTRIBUTE_KEY).ok_or_else(|| missing(consts::ATTRIBUTE_KEY))?;
            let marks = same_attributes(types, keys, column);
            // Differences that came in are those that go out where they stand at the same rows.
            let width = if is_narrow { DataType::UInt16 } else { DataType::UInt32 };
            if let Some(kept) = kept
                && *kept.differences.data_type() == width
                && kept.marks == marks
            {
                return Ok(kept.differences);
            }
            // Rows that follow each other with the same content can stand in any order: parents have to ascend.
            let mut start = 0;
            while start < marks.len() {
                let ahead = marks.get(start + 1..).unwrap_or_default();
                let length = 1 + if ahead.first() == Some(&true) { run_length(ahead) } else { 0 };
                if let Some(run) = parents.get_mut(start..start + length).filter(|run| !run.is_sorted()) {
                    run.sort_unstable();
                }
                start += length;
            }
            idmap::differences(&mut parents, |row| marks[row]);
        }
    }
    Ok(idmap::column(parents, None, is_narrow))
}
