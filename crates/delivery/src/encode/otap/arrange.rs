//! Attributes in an order that is cheap to send: key by key, and value by value where values repeat.
//!
//! Receivers that lay out their tables themselves write them so. Where a table comes item by item instead, parent ids hardly
//! compress: each key is followed by another one, so that none is a difference to the row before.

use arrow::array::{Array, ArrayRef, DictionaryArray, StringArray, UInt8Array};
use arrow::datatypes::{UInt8Type, UInt16Type};
use hashbrown::HashMap;
use otel_arrow_dfe_pdata::schema::consts;

use crate::encode::error::EncodeError;
use crate::encode::table::Table;

/// Rows below which the order does not matter.
const FEW: usize = 64;
/// Rows for each value from which on a value is said to repeat.
const REPEATS: usize = 8;

/// Rows in order, and what they belong to.
pub(super) type Placed = (Option<Vec<u32>>, Vec<u32>);

/// What rows have to have in common to stand together: type and key, and the value if it repeats.
type Class = (u8, u32, u32);

/// Brings rows together that have type and key in common, unless they are so already; `order` has the rows that are sent and
/// `parents` theirs. Rows of one class stay in their order.
pub(super) fn arrange(table: &Table<'_>, (order, parents): Placed) -> Result<Placed, EncodeError> {
    let types: &UInt8Array = table.required(consts::ATTRIBUTE_TYPE, "numbers of 8 bits")?;
    let missing = EncodeError::MissingColumn { table: table.kind, column: consts::ATTRIBUTE_KEY };
    let keys = numbers(table.array(consts::ATTRIBUTE_KEY).ok_or(missing)?);
    let row_at = |place: usize| order.as_ref().map_or(place, |order| order[place] as usize);
    let name_of = |row: usize| (types.value(row), keys(row));
    if parents.len() < FEW || is_together((0..parents.len()).map(|place| name_of(row_at(place)))) {
        return Ok((order, parents));
    }
    let texts = table.array(consts::ATTRIBUTE_STR).filter(|array| has_dictionary(array)).map(numbers);
    let text = |row: usize| texts.as_ref().map_or(0, |texts| texts(row) + 1);
    let value_of = |row: usize| if types.value(row) == 1 { text(row) } else { 0 };
    // Numbers of classes in the order in which they come up, with how many rows they have.
    let mut numbered: HashMap<Class, u32> = HashMap::new();
    let mut classes: Vec<(Class, u32)> = Vec::new();
    let mut class_of: Vec<u32> = Vec::with_capacity(parents.len());
    let mut last: Option<(Class, u32)> = None;
    for place in 0..parents.len() {
        let row = row_at(place);
        let (kind, key) = name_of(row);
        let class = (kind, key, value_of(row));
        let number = match last {
            Some((known, number)) if known == class => number,
            _ => *numbered.entry(class).or_insert_with(|| {
                classes.push((class, 0));
                classes.len() as u32 - 1
            }),
        };
        last = Some((class, number));
        classes[number as usize].1 += 1;
        class_of.push(number);
    }
    // Names in their order, with rows and values.
    let mut names: Vec<(usize, usize)> = Vec::new();
    let mut name_numbers: HashMap<(u8, u32), usize> = HashMap::new();
    let name_numbers: Vec<usize> = classes
        .iter()
        .map(|((kind, key, _), rows)| {
            let name = *name_numbers.entry((*kind, *key)).or_insert_with(|| {
                names.push((0, 0));
                names.len() - 1
            });
            names[name].0 += *rows as usize;
            names[name].1 += 1;
            name
        })
        .collect();
    // Where the rows of each class begin: by name, and by value where values repeat.
    let mut by_name: Vec<u32> = (0..classes.len() as u32).collect();
    by_name.sort_by_key(|class| name_numbers[*class as usize]);
    let mut starts = vec![0_u32; classes.len()];
    // Classes that stand for all values of their name.
    let mut stands_for: Vec<u32> = (0..classes.len() as u32).collect();
    let (mut next, mut whole): (u32, Option<(usize, u32)>) = (0, None);
    for class in by_name {
        let (name, rows) = (name_numbers[class as usize], classes[class as usize].1);
        let (of_name, values) = names[name];
        match whole {
            Some((known, first)) if known == name => stands_for[class as usize] = first,
            _ => {
                starts[class as usize] = next;
                whole = (values * REPEATS > of_name).then_some((name, class));
            }
        }
        next += rows;
    }
    let mut arranged = vec![0_u32; parents.len()];
    let mut arranged_parents = vec![0_u32; parents.len()];
    for (place, class) in class_of.iter().enumerate() {
        let start = &mut starts[stands_for[*class as usize] as usize];
        arranged[*start as usize] = row_at(place) as u32;
        arranged_parents[*start as usize] = parents[place];
        *start += 1;
    }
    Ok((Some(arranged), arranged_parents))
}

/// Whether no name comes up again after another one.
fn is_together(mut names: impl Iterator<Item = (u8, u32)>) -> bool {
    let Some(mut last) = names.next() else { return true };
    let mut seen = vec![last];
    for name in names {
        if name != last {
            if seen.contains(&name) {
                return false;
            }
            seen.push(name);
            last = name;
        }
    }
    true
}

fn has_dictionary(array: &ArrayRef) -> bool {
    array.as_any().is::<DictionaryArray<UInt8Type>>() || array.as_any().is::<DictionaryArray<UInt16Type>>()
}

/// Numbers that rows share if they have the same text.
fn numbers(array: &ArrayRef) -> Box<dyn Fn(usize) -> u32 + '_> {
    if let Some(array) = array.as_any().downcast_ref::<DictionaryArray<UInt8Type>>() {
        let keys = array.keys().values();
        return Box::new(move |row| u32::from(keys[row]));
    }
    if let Some(array) = array.as_any().downcast_ref::<DictionaryArray<UInt16Type>>() {
        let keys = array.keys().values();
        return Box::new(move |row| u32::from(keys[row]));
    }
    let texts = array.as_any().downcast_ref::<StringArray>();
    let mut known: HashMap<&str, u32> = HashMap::new();
    let numbers = (0..array.len()).map(|row| {
        let text = texts.filter(|texts| texts.is_valid(row)).map_or("", |texts| texts.value(row));
        let next = known.len() as u32;
        *known.entry(text).or_insert(next)
    });
    let numbers: Vec<u32> = numbers.collect();
    Box::new(move |row| numbers[row])
}
