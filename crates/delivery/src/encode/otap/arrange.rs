//! Attributes in an order that is cheap to send: key by key, and value by value where values repeat.
//!
//! Receivers that lay out their tables themselves write them so. Where a table comes item by item instead, parent ids hardly
//! compress: each key is followed by another one, so that none is a difference to the row before.

use arrow::array::{Array, ArrayRef, DictionaryArray, Int64Array, StringArray, UInt8Array};
use arrow::datatypes::{UInt8Type, UInt16Type};
use hashbrown::{HashMap, HashSet};
use otel_arrow_dfe_pdata::schema::consts;

use crate::encode::error::EncodeError;
use crate::encode::marks::{run_length, same_names};
use crate::encode::table::Table;

/// Rows below which the order does not matter.
const FEW: usize = 64;
/// Rows for each value below which the rows of a key stay in their order. Their parents are then those of all items, for each
/// such key the same, and compress to nothing after the first one. Where values have more rows, keys that go together have
/// the same groups, and the same parents thus.
const ROWS_A_VALUE: usize = 16;
/// Rows for each pair of equal neighbours from which on this holds: each pair interrupts it.
const ROWS_A_PAIR: usize = 20;
/// Types of attributes whose values are looked at.
const TEXT: u8 = 1;
const INTEGER: u8 = 2;

/// Rows in order, and what they belong to.
pub(super) type Placed = (Option<Vec<u32>>, Vec<u32>);

/// Brings rows together that have type and key in common, and among them those that have the value in common if values
/// repeat; unless types and keys are together already, for then to move all columns takes more time than it saves bytes.
/// Rows that have all of it in common stay in their order. `order` has the rows that are sent, and `parents` theirs.
pub(super) fn arrange(table: &Table<'_>, (order, parents): Placed) -> Result<Placed, EncodeError> {
    let types: &UInt8Array = table.required(consts::ATTRIBUTE_TYPE, "numbers of 8 bits")?;
    let missing = EncodeError::MissingColumn { table: table.kind, column: consts::ATTRIBUTE_KEY };
    let keys = table.array(consts::ATTRIBUTE_KEY).ok_or(missing)?;
    if parents.len() < FEW {
        return Ok((order, parents));
    }
    if order.is_none() && is_together(types, keys) {
        return Ok((order, parents));
    }
    let numbers = numbers(keys);
    let rows: Vec<u32> = order.unwrap_or_else(|| (0..parents.len() as u32).collect());
    // Numbers of names in the order in which they come up.
    let mut known: HashMap<(u8, u32), u32> = HashMap::new();
    let mut last = ((0, u32::MAX), 0);
    let names: Vec<u32> = rows
        .iter()
        .map(|row| {
            let name = (types.value(*row as usize), numbers[*row as usize]);
            if name != last.0 {
                let next = known.len() as u32;
                last = (name, *known.entry(name).or_insert(next));
            }
            last.1
        })
        .collect();
    let mut places: Vec<u32> = (0..rows.len() as u32).collect();
    let mut groups = Groups::default();
    groups.bring_together(&mut places, 0, |place| names[place as usize]);
    let texts = table.array(consts::ATTRIBUTE_STR).and_then(keys_of);
    let integers = table.array(consts::ATTRIBUTE_INT);
    let integer_keys = integers.and_then(keys_of);
    let integers = integers.and_then(|array| array.as_any().downcast_ref::<Int64Array>()).map(Int64Array::values);
    // Numbers of integers by place: once for all names, of which there may be as many as rows.
    let mut of_integers: Vec<u32> = Vec::new();
    let mut rest = places.as_mut_slice();
    while let Some(first) = rest.first() {
        let kind = types.value(rows[*first as usize] as usize);
        let name = names[*first as usize];
        let length = rest.iter().take_while(|place| names[**place as usize] == name).count();
        let (section, others) = rest.split_at_mut(length);
        rest = others;
        let row = |place: u32| rows[place as usize] as usize;
        match (kind, &texts, &integer_keys, integers) {
            (TEXT, Some(keys), ..) | (INTEGER, _, Some(keys), _) => groups.by_value(section, |place| keys[row(place)]),
            (INTEGER, _, None, Some(values)) => {
                let mut known: HashMap<i64, u32> = HashMap::new();
                of_integers.resize(parents.len(), 0);
                for place in section.iter() {
                    let next = known.len() as u32;
                    of_integers[*place as usize] = *known.entry(values[row(*place)]).or_insert(next);
                }
                groups.by_value(section, |place| of_integers[place as usize]);
            }
            _ => {}
        }
    }
    let parents = places.iter().map(|place| parents[*place as usize]).collect();
    places.iter_mut().for_each(|place| *place = rows[*place as usize]);
    let is_as_before = places.len() == types.len() && places.iter().zip(0..).all(|(row, place)| *row == place);
    Ok(((!is_as_before).then_some(places), parents))
}

/// Whether it happens more than now and then that a value is that of the place before.
fn comes_in_runs<T: PartialEq>(places: &[u32], value: impl Fn(u32) -> T) -> bool {
    let pairs = places.windows(2).filter(|pair| value(pair[0]) == value(pair[1])).count();
    pairs * ROWS_A_PAIR > places.len()
}

/// Brings places together by number, in time proportional to how many there are.
#[derive(Debug, Default)]
struct Groups {
    /// For each number the round in which it came up last, and its group in it.
    of_number: Vec<(u32, u32)>,
    round: u32,
    /// Places of each group; later where its next place goes.
    starts: Vec<u32>,
    room: Vec<u32>,
}

impl Groups {
    /// Brings together what has the same number, if that pays.
    fn by_value(&mut self, places: &mut [u32], number: impl Fn(u32) -> u32) {
        let shortest = if comes_in_runs(places, &number) { 0 } else { ROWS_A_VALUE };
        self.bring_together(places, shortest, number);
    }

    /// Brings together what has the same number, in the order in which numbers come up; unless a number has fewer than
    /// `shortest` places, on average.
    fn bring_together(&mut self, places: &mut [u32], shortest: usize, number: impl Fn(u32) -> u32) {
        self.round += 1;
        self.starts.clear();
        for place in places.iter() {
            let number = number(*place) as usize;
            if self.of_number.len() <= number {
                self.of_number.resize(number + 1, (0, 0));
            }
            let (round, group) = &mut self.of_number[number];
            if *round != self.round {
                (*round, *group) = (self.round, self.starts.len() as u32);
                self.starts.push(0);
            }
            self.starts[*group as usize] += 1;
        }
        if self.starts.len() * shortest > places.len() {
            return;
        }
        let mut next = 0;
        for start in &mut self.starts {
            next += std::mem::replace(start, next);
        }
        self.room.clear();
        self.room.resize(places.len(), 0);
        for place in places.iter() {
            let (_, group) = self.of_number[number(*place) as usize];
            let start = &mut self.starts[group as usize];
            self.room[*start as usize] = *place;
            *start += 1;
        }
        places.copy_from_slice(&self.room);
    }
}

/// Whether no name comes up again after another one.
fn is_together(types: &UInt8Array, keys: &ArrayRef) -> bool {
    let same = same_names(types, keys);
    let narrow = keys.as_any().downcast_ref::<DictionaryArray<UInt8Type>>();
    let wide = keys.as_any().downcast_ref::<DictionaryArray<UInt16Type>>();
    let (mut seen, mut start) = (HashSet::new(), 0);
    while let Some(kind) = types.values().get(start) {
        let key = match (narrow, wide) {
            (Some(narrow), _) => u16::from(narrow.keys().value(start)),
            (_, Some(wide)) => wide.keys().value(start),
            _ => return false,
        };
        if !seen.insert((*kind, key)) {
            return false;
        }
        start +=
            1 + same.get(start + 1..).map_or(0, |same| if same.first() == Some(&true) { run_length(same) } else { 0 });
    }
    true
}

/// Keys of a dictionary, which rows share if they have the same value.
fn keys_of(array: &ArrayRef) -> Option<Vec<u32>> {
    if let Some(array) = array.as_any().downcast_ref::<DictionaryArray<UInt8Type>>() {
        return Some(array.keys().values().iter().map(|key| u32::from(*key)).collect());
    }
    let array = array.as_any().downcast_ref::<DictionaryArray<UInt16Type>>()?;
    Some(array.keys().values().iter().map(|key| u32::from(*key)).collect())
}

/// Numbers that rows share if they have the same text.
fn numbers(array: &ArrayRef) -> Vec<u32> {
    if let Some(keys) = keys_of(array) {
        return keys;
    }
    let texts = array.as_any().downcast_ref::<StringArray>();
    let mut known: HashMap<&str, u32> = HashMap::new();
    let numbers = (0..array.len()).map(|row| {
        let text = texts.filter(|texts| texts.is_valid(row)).map_or("", |texts| texts.value(row));
        let next = known.len() as u32;
        *known.entry(text).or_insert(next)
    });
    numbers.collect()
}
