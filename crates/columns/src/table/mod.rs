//! An attribute table under construction: one column a name and type, laid out as rows at the end.
//!
//! OTAP sends attributes ordered by type, name and value. A table that is written record by record has to be sorted for
//! that; this one collects each attribute in a column of its own from the start, with its values numbered, and puts the rows
//! in order by counting.

mod any;
mod bulk;
mod layout;
mod names;
mod rows;
mod values;

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use crate::text::{same, utf8};
pub(crate) use any::AnyValues;
pub(crate) use bulk::{Cached, TextIds};
pub(crate) use layout::LaidOut;
pub(crate) use names::NameId;
use names::Names;
pub(crate) use rows::Ordering;
pub use rows::ParentIds;
use values::{Recent, Strings, ValueId};

/// Type of an attribute value, by its number in OTAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    Text = 1,
    Integer = 2,
    Double = 3,
    Boolean = 4,
    Map = 5,
    List = 6,
    Bytes = 7,
}

/// One more than the largest number of a kind.
const KINDS: usize = 8;

/// The values of one attribute name and type, in the order of their parents.
#[derive(Debug)]
struct Column {
    name: NameId,
    kind: Kind,
    parents: Vec<u16>,
    /// Numbers of the values; integers stand for themselves in `integers`.
    values: Vec<ValueId>,
    integers: Vec<i64>,
    /// Not all values are the same.
    varies: bool,
    /// Integers are mostly different; known once rows are brought into order, as the next.
    is_diverse: bool,
    /// Its rows are not grouped by value.
    keeps_order: bool,
    lookups: Lookups,
    recent: Recent,
}

/// Whether it pays to look for a value among those that are there already.
#[derive(Debug, Default)]
struct Lookups {
    made: u32,
    found: u32,
}

impl Lookups {
    /// Lookups before a judgement.
    const TRIAL: u32 = 256;

    /// Text that is different in each message is not looked for any more: one in eight has to be found.
    fn pay(&self) -> bool {
        self.made < Self::TRIAL || self.found >= self.made / 8
    }
}

impl Column {
    /// An empty column with room for so many values.
    fn new(name: NameId, kind: Kind, room: usize) -> Self {
        let (numbers, integers) = if kind == Kind::Integer { (0, room) } else { (room, 0) };
        Self {
            name,
            kind,
            parents: Vec::with_capacity(room),
            values: Vec::with_capacity(numbers),
            integers: Vec::with_capacity(integers),
            varies: false,
            is_diverse: false,
            keeps_order: false,
            lookups: Lookups::default(),
            recent: Recent::default(),
        }
    }

    #[inline]
    fn push(&mut self, parent: u16, value: ValueId) {
        self.varies |= self.values.last().is_some_and(|last| *last != value);
        self.parents.push(parent);
        self.values.push(value);
    }

    fn push_all(&mut self, parents: Range<u16>, value: ValueId) {
        self.varies |= self.values.last().is_some_and(|last| *last != value);
        self.parents.extend(parents);
        self.values.resize(self.parents.len(), value);
    }

    #[inline]
    fn push_integer(&mut self, parent: u16, value: i64) {
        self.varies |= self.integers.last().is_some_and(|last| *last != value);
        self.parents.push(parent);
        self.integers.push(value);
    }

    /// Numbers that stand for the values, row by row.
    fn numbers(&self) -> impl ExactSizeIterator<Item = u64> {
        let is_integer = self.kind == Kind::Integer;
        (0..self.parents.len()).map(move |row| match is_integer {
            true => self.integers.get(row).map_or(0, |value| value.cast_unsigned()),
            false => self.values.get(row).map_or(0, |value| u64::from(*value)),
        })
    }

    /// Equal values have equal numbers wherever they are, and not only next to each other.
    fn tells_values_apart(&self) -> bool {
        self.kind != Kind::Double && self.lookups.pay()
    }
}

/// How an attribute is named when it is written: by a number that is known beforehand, or by its text.
pub(crate) trait AttributeName {
    /// Its number in the table; `previous` is the number of the name written before.
    fn resolve(self, table: &mut AttributeTable, previous: NameId) -> NameId;
}

impl AttributeName for &str {
    fn resolve(self, table: &mut AttributeTable, previous: NameId) -> NameId {
        table.names.resolve(previous, self.as_bytes())
    }
}

impl AttributeName for &[u8] {
    fn resolve(self, table: &mut AttributeTable, previous: NameId) -> NameId {
        table.names.resolve(previous, self)
    }
}

impl AttributeName for NameId {
    fn resolve(self, _: &mut AttributeTable, _: NameId) -> NameId {
        self
    }
}

/// The attributes of the records of a batch.
#[derive(Debug)]
pub(crate) struct AttributeTable {
    names: Names,
    /// For each name the column of each kind, plus one; 0 is none.
    index: Vec<[u32; KINDS]>,
    columns: Vec<Column>,
    texts: Strings,
    /// Maps and lists as CBOR.
    serialized: Strings,
    blobs: Strings,
    doubles: Vec<f64>,
    /// Readers may differ on whether two values that follow each other are equal.
    ambiguous: bool,
    /// Parents to expect, for room.
    parents: usize,
}

impl AttributeTable {
    /// An empty table. The names in `known` have their positions as numbers.
    pub(crate) fn new(known: &[&'static str]) -> Self {
        Self {
            names: Names::new(known),
            index: Vec::new(),
            columns: Vec::new(),
            texts: Strings::new(),
            serialized: Strings::new(),
            blobs: Strings::new(),
            doubles: Vec::new(),
            ambiguous: false,
            parents: 0,
        }
    }

    /// Room for `parents` parents with `text_bytes` bytes of text together.
    pub(crate) fn reserve(&mut self, parents: usize, text_bytes: usize) {
        self.parents = parents;
        self.texts.reserve(parents, text_bytes);
    }

    /// Bytes of values of variable length.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.bytes() + self.serialized.bytes() + self.blobs.bytes()
    }

    /// The number of a name, which is added if it is new.
    pub(crate) fn number_of_name(&mut self, name: &str) -> NameId {
        self.names.resolve(NameId::MAX, name.as_bytes())
    }

    /// Position of the column of a name and type.
    #[inline]
    fn column(&mut self, name: NameId, kind: Kind) -> usize {
        let at = usize::try_from(name).unwrap_or(usize::MAX);
        match self.index.get(at).map(|kinds| kinds[usize::from(kind as u8)]) {
            None | Some(0) => self.new_column(at, name, kind),
            Some(number) => usize::try_from(number).unwrap_or(1) - 1,
        }
    }

    #[cold]
    fn new_column(&mut self, at: usize, name: NameId, kind: Kind) -> usize {
        if self.index.len() <= at {
            self.index.resize(self.names.len(), [0; KINDS]);
        }
        // A device's own key may appear once: only the first ones get room for all.
        let room = if self.columns.len() < 32 { self.parents } else { 0 };
        self.columns.push(Column::new(name, kind, room));
        self.index[at][usize::from(kind as u8)] = u32::try_from(self.columns.len()).unwrap_or(u32::MAX);
        self.columns.len() - 1
    }

    /// One text for all parents of `parents`, which are later than those that have such an attribute.
    pub(crate) fn text_of_all(&mut self, parents: Range<u16>, name: NameId, value: &[u8]) {
        let column = self.column(name, Kind::Text);
        let column = &mut self.columns[column];
        let id = value_of(&mut self.texts, column, &utf8(value));
        column.push_all(parents, id);
    }

    /// One integer for all parents of `parents`, which are later than those that have such an attribute.
    pub(crate) fn int_of_all(&mut self, parents: Range<u16>, name: NameId, value: i64) {
        let column = self.column(name, Kind::Integer);
        let column = &mut self.columns[column];
        column.varies |= column.integers.last().is_some_and(|last| *last != value);
        column.parents.extend(parents);
        column.integers.resize(column.parents.len(), value);
    }

    /// Begins to bring the rows into their order. Gives nothing if there are none.
    pub(crate) fn order(self, parent_ids: ParentIds) -> Option<Ordering> {
        (!self.columns.is_empty()).then(|| Ordering::new(self, parent_ids))
    }

    /// The rows as a record batch, made at once. Gives nothing if there are none.
    pub(crate) fn record_batch(self) -> Result<Option<RecordBatch>, ArrowError> {
        let Some(mut ordering) = self.order(ParentIds::Plain) else { return Ok(None) };
        while !ordering.step() {}
        ordering.laid_out().record_batch().map(Some)
    }
}

/// Numbers a value of variable length. A value that is that of the row before has its number.
#[inline]
fn value_of(values: &mut Strings, column: &mut Column, value: &[u8]) -> ValueId {
    let is_looked_up = column.lookups.pay();
    // Values that are looked up have one number each, so a look at the last one just saves time while it is always the same.
    if (!column.varies || !is_looked_up)
        && let Some(last) = column.values.last()
        && same(values.get(*last), value)
    {
        return *last;
    }
    if !is_looked_up {
        return values.push(value);
    }
    // A key that a device uses a few times has no need of a memory.
    let (id, found) = match column.values.len() < Recent::WORTH {
        true => values.find_or_push(value),
        false => values.intern(&mut column.recent, value),
    };
    column.lookups.made += 1;
    column.lookups.found += u32::from(found);
    id
}

/// Writes the attributes of one record.
pub(crate) struct AttributeWriter<'t> {
    table: &'t mut AttributeTable,
    parent: u16,
    /// Name of the attribute written last.
    previous: NameId,
    /// The texts of this record are known to be UTF-8.
    is_utf8: bool,
}

impl<'t> AttributeWriter<'t> {
    /// A writer for the record with the id `parent`; parents come in ascending order.
    pub(crate) fn new(table: &'t mut AttributeTable, parent: u16, is_utf8: bool) -> Self {
        Self { table, parent, previous: 0, is_utf8 }
    }

    /// Whether all texts of the record are known to be UTF-8.
    pub(crate) fn is_utf8(&self) -> bool {
        self.is_utf8
    }

    #[inline]
    fn column(&mut self, name: impl AttributeName, kind: Kind) -> usize {
        self.previous = name.resolve(self.table, self.previous);
        self.table.column(self.previous, kind)
    }

    /// A text value; bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn text(&mut self, name: impl AttributeName, value: &[u8]) {
        let column = self.column(name, Kind::Text);
        self.text_in(column, value);
    }

    /// A text value in place of one that the record may have already under this name.
    pub(crate) fn last_text(&mut self, name: impl AttributeName, value: &[u8]) {
        let at = self.column(name, Kind::Text);
        let column = &mut self.table.columns[at];
        if column.parents.last() == Some(&self.parent) {
            let _ = column.parents.pop();
            let _ = column.values.pop();
        }
        self.text_in(at, value);
    }

    #[inline]
    fn text_in(&mut self, column: usize, value: &[u8]) {
        let checked;
        let value = if self.is_utf8 {
            value
        } else {
            checked = utf8(value);
            checked.as_ref()
        };
        let (texts, column) = (&mut self.table.texts, &mut self.table.columns[column]);
        let id = value_of(texts, column, value);
        column.push(self.parent, id);
    }

    /// An integer value.
    pub(crate) fn int(&mut self, name: impl AttributeName, value: i64) {
        let column = self.column(name, Kind::Integer);
        self.table.columns[column].push_integer(self.parent, value);
    }

    /// A floating point value.
    pub(crate) fn double(&mut self, name: impl AttributeName, value: f64) {
        let column = self.column(name, Kind::Double);
        let (doubles, column) = (&mut self.table.doubles, &mut self.table.columns[column]);
        let last = column.values.last().copied();
        let known = last.and_then(|last| doubles.get(usize::try_from(last).ok()?)).copied();
        // Zeros of both signs are equal to some readers, and NaN is not equal to itself to some.
        self.table.ambiguous |= known.is_some_and(|known| known.is_nan() || (known == value && value == 0.0));
        match (last, known) {
            (Some(last), Some(known)) if known.to_bits() == value.to_bits() => column.push(self.parent, last),
            _ => {
                column.push(self.parent, ValueId::try_from(doubles.len()).unwrap_or(ValueId::MAX));
                doubles.push(value);
            }
        }
    }

    /// A boolean value.
    pub(crate) fn bool(&mut self, name: impl AttributeName, value: bool) {
        let column = self.column(name, Kind::Boolean);
        let column = &mut self.table.columns[column];
        column.push(self.parent, ValueId::from(value));
    }

    /// An opaque value.
    pub(crate) fn bytes(&mut self, name: impl AttributeName, value: &[u8]) {
        let column = self.column(name, Kind::Bytes);
        let (blobs, column) = (&mut self.table.blobs, &mut self.table.columns[column]);
        let id = value_of(blobs, column, value);
        column.push(self.parent, id);
    }

    /// A map, already encoded as CBOR.
    pub(crate) fn map(&mut self, name: impl AttributeName, cbor: &[u8]) {
        self.cbor(name, Kind::Map, cbor);
    }

    /// A list, already encoded as CBOR.
    pub(crate) fn list(&mut self, name: impl AttributeName, cbor: &[u8]) {
        self.cbor(name, Kind::List, cbor);
    }

    fn cbor(&mut self, name: impl AttributeName, kind: Kind, cbor: &[u8]) {
        let column = self.column(name, kind);
        let (serialized, column) = (&mut self.table.serialized, &mut self.table.columns[column]);
        let id = value_of(serialized, column, cbor);
        column.push(self.parent, id);
    }
}
