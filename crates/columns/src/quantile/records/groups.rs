//! Which series each observation belongs to.
//!
//! Each grouping attribute gives a small number for each observation, by the code of its text where there is a
//! dictionary. Combinations of few values are looked up in a table that stays from batch to batch. Of many, the numbers are
//! combined pair by pair into one, through a table. So an observation costs a few look-ups in arrays, and only each distinct
//! combination is looked for among the known series, if at all.

use rustc_hash::FxHashMap;

use super::Lookup;
use super::attributes::TextCodes;
use super::combinations::Combinations;
use crate::quantile::intern::{ABSENT, Interner, Stamped};
use crate::quantile::observations::{Observations, index};
use crate::quantile::reader::{Bound, Reader};

/// Pairs of codes up to this many are combined by array, more by hash.
const MAX_PAIRS: usize = 1 << 18;

/// Memory that is used again from batch to batch.
#[derive(Debug, Default)]
pub(in crate::quantile) struct Scratch {
    keys: Vec<KeyCodes>,
    /// Number of the value of each text code, while one attribute is looked at.
    known: Vec<u32>,
    code_of_text: Stamped,
    code_of_value: Stamped,
    code_of_pair: Stamped,
    code_of_far_pair: FxHashMap<u64, u32>,
    first: Vec<u32>,
    /// Place of each group, and its first observation.
    first_at: Vec<(u32, u32)>,
    combinations: Combinations,
    /// For each attribute and value its part of the place of a combination.
    places: Vec<Vec<u32>>,
    /// By place.
    group_of_place: Stamped,
}

/// The values of one grouping attribute.
#[derive(Debug, Default)]
struct KeyCodes {
    /// For each observation.
    codes: Vec<u32>,
    /// Number of the value of each code.
    values: Vec<u32>,
}

pub(super) fn assign(reader: &mut Reader, lookup: &Lookup<'_>, out: &mut Observations) {
    let Reader { bound, interner, scratch, .. } = reader;
    out.groups.resize(out.values.len(), 0);
    if out.values.is_empty() {
        return;
    }
    scratch.keys.resize_with(bound.group_by.len(), KeyCodes::default);
    for (at, bound) in bound.group_by.iter().enumerate() {
        scratch.number(at, bound, lookup, interner, &out.items);
    }
    let Scratch { keys, combinations, places, .. } = scratch;
    if combinations.begin(interner, keys.iter().map(|key| &key.values[..]), places) {
        return scratch.look_up(interner, out);
    }
    scratch.combine(&mut out.groups);
    // Groups are numbered in the order of their first observations.
    let mut groups = 0;
    scratch.first.resize(scratch.first.len().max(out.groups.len() + 1), 0);
    for (at, group) in out.groups.iter().enumerate() {
        // Without a branch: whether a series is new in the batch cannot be predicted.
        scratch.first[groups] = index(at);
        groups += usize::from(*group as usize == groups);
    }
    let mut values = Vec::with_capacity(scratch.keys.len());
    for first in &scratch.first[..groups] {
        values.clear();
        values.extend(scratch.keys.iter().map(|key| key.values[key.codes[*first as usize] as usize]));
        out.series.push(interner.series_of(&values));
    }
}

/// Numbers values by the codes of texts, which are asked for once each.
fn quick<C: Copy + Into<usize>>(
    codes: &mut Vec<u32>,
    known: &mut Vec<u32>,
    items: &[u32],
    (rows, texts): (&[u32], &[C]),
    mut code_at: impl FnMut(u32) -> u32,
) {
    const UNKNOWN: u32 = u32::MAX;
    known.clear();
    codes.extend(items.iter().map(|item| {
        let row = rows.get(*item as usize).map_or(usize::MAX, |row| *row as usize);
        // 0 for items without the attribute.
        let text = texts.get(row).map_or(0, |text| (*text).into() + 1);
        match known.get(text) {
            Some(code) if *code != UNKNOWN => *code,
            _ => {
                let code = code_at(*item);
                if known.len() <= text {
                    known.resize(text + 1, UNKNOWN);
                }
                known[text] = code;
                code
            }
        }
    }));
}

impl Scratch {
    /// Numbers the values of one attribute, in the order of their first appearance.
    fn number(&mut self, at: usize, bound: &Bound, lookup: &Lookup<'_>, interner: &mut Interner, items: &[u32]) {
        let Self { keys, code_of_text, code_of_value, known, .. } = self;
        let KeyCodes { codes, values } = &mut keys[at];
        codes.clear();
        values.clear();
        code_of_text.begin(0);
        code_of_value.begin(interner.values());
        let mut code_of = |value: u32| {
            code_of_value.get_or_insert_with(value as usize, || {
                values.push(value);
                index(values.len() - 1)
            })
        };
        let mut code_at = |item: u32| {
            let Some((table, row)) = lookup.find(bound, item as usize) else { return code_of(ABSENT) };
            // Text in Arrow is valid.
            let mut number = || interner.value(table.value(row, &bound.steps)).unwrap_or(ABSENT);
            match table.text_code(row) {
                Some(text) if bound.steps.is_empty() => code_of_text.get_or_insert_with(text, || code_of(number())),
                _ => code_of(number()),
            }
        };
        match lookup.by_text_code(bound) {
            Some((rows, TextCodes::Byte(texts))) => quick(codes, known, items, (rows, texts), code_at),
            Some((rows, TextCodes::Short(texts))) => quick(codes, known, items, (rows, texts), code_at),
            None => codes.extend(items.iter().map(|item| code_at(*item))),
        }
    }

    /// Finds the series by combinations that came before.
    fn look_up(&mut self, interner: &mut Interner, out: &mut Observations) {
        let Self { keys, first_at, combinations, places, group_of_place, .. } = self;
        for (KeyCodes { codes, .. }, places) in keys.iter().zip(&*places) {
            for (group, code) in out.groups.iter_mut().zip(codes) {
                *group += places[*code as usize];
            }
        }
        group_of_place.begin(combinations.len());
        first_at.resize(first_at.len().max(out.groups.len() + 1), (0, 0));
        let mut groups = 0;
        for (at, place) in out.groups.iter_mut().enumerate() {
            let (group, is_new) = group_of_place.get_or_insert(*place as usize, groups);
            // Without a branch: whether a series is new in the batch cannot be predicted.
            first_at[groups as usize] = (*place, index(at));
            groups += u32::from(is_new);
            *place = group;
        }
        let mut values = Vec::with_capacity(keys.len());
        out.series.extend(first_at[..groups as usize].iter().map(|(place, at)| {
            combinations.series(*place, || {
                values.clear();
                values.extend(keys.iter().map(|key| key.values[key.codes[*at as usize] as usize]));
                interner.series_of(&values)
            })
        }));
    }

    /// Combines the numbers of all attributes into one for each observation.
    fn combine(&mut self, groups: &mut [u32]) {
        let Self { keys, code_of_pair, code_of_far_pair, .. } = self;
        let Some((first, rest)) = keys.split_first() else { return };
        groups.copy_from_slice(&first.codes);
        let mut count = first.values.len();
        for key in rest {
            let width = key.values.len();
            let mut next = 0;
            if count.saturating_mul(width) <= MAX_PAIRS {
                code_of_pair.begin(count * width);
                for (group, code) in groups.iter_mut().zip(&key.codes) {
                    let pair = *group as usize * width + *code as usize;
                    let (code, is_new) = code_of_pair.get_or_insert(pair, next);
                    next += u32::from(is_new);
                    *group = code;
                }
            } else {
                code_of_far_pair.clear();
                let mut make = || {
                    next += 1;
                    next - 1
                };
                for (group, code) in groups.iter_mut().zip(&key.codes) {
                    let pair = u64::from(*group) << 32 | u64::from(*code);
                    *group = *code_of_far_pair.entry(pair).or_insert_with(&mut make);
                }
            }
            count = next as usize;
        }
    }
}
