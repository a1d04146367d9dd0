//! What all batches of one template and one number of records have in common: ids and attributes of the points.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt8Array,
    UInt16Array, UInt32Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, UInt8Type, UInt16Type};
use arrow::error::ArrowError;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts::metadata::encodings;
use otel_arrow_dfe_pdata::schema::{FieldExt as _, consts};
use rustc_hash::FxHashMap;

use super::skeleton::Skeleton;
use crate::{ColumnsError, ParentIds};

/// Attributes of a point.
const KEYS: usize = 3;
/// Type of a text attribute in OTAP.
const TEXT: u8 = 1;

/// Text attributes of columns, by numbers of their texts.
#[derive(Debug)]
pub(super) struct Labels {
    keys: [&'static str; KEYS],
    texts: Vec<String>,
    index: FxHashMap<String, u16>,
    /// For each column the text of each key.
    columns: Vec<[u16; KEYS]>,
}

impl Labels {
    /// No columns; `keys` ascend.
    pub(super) fn new(keys: [&'static str; KEYS]) -> Self {
        Self { keys, texts: Vec::new(), index: FxHashMap::default(), columns: Vec::new() }
    }

    /// Number of a text. A template has three texts a counter at most, which is far below 65,536.
    pub(super) fn text(&mut self, text: &str) -> u16 {
        if let Some(known) = self.index.get(text) {
            return *known;
        }
        let number = u16::try_from(self.texts.len()).unwrap_or(u16::MAX);
        self.texts.push(text.to_owned());
        let _ = self.index.insert(text.to_owned(), number);
        number
    }

    pub(super) fn push(&mut self, texts: [u16; KEYS]) {
        self.columns.push(texts);
    }

    /// The attributes of the points of batches of `records` records, ordered by key, value and point.
    fn table(&self, records: u32, ids: ParentIds) -> Result<RecordBatch, ArrowError> {
        let points = self.columns.len() * records as usize;
        let rows = points * KEYS;
        let mut order: Vec<u16> = (0..self.texts.len()).map(|text| u16::try_from(text).unwrap_or(u16::MAX)).collect();
        order.sort_by_key(|text| self.texts.get(usize::from(*text)));
        let mut rank = vec![0_u16; self.texts.len()];
        for (place, text) in order.iter().enumerate() {
            rank[usize::from(*text)] = u16::try_from(place).unwrap_or(u16::MAX);
        }
        let mut parents: Vec<u32> = Vec::with_capacity(rows);
        let mut texts: Vec<u16> = Vec::with_capacity(rows);
        let mut columns: Vec<u32> = (0..u32::try_from(self.columns.len()).unwrap_or(u32::MAX)).collect();
        for key in 0..KEYS {
            let text_of = |column: u32| rank[usize::from(self.columns[column as usize][key])];
            columns.sort_by_key(|column| (text_of(*column), *column));
            let mut before = None;
            for column in &columns {
                let (text, first) = (text_of(*column), column * records);
                match (ids, before) {
                    (ParentIds::Plain, _) => parents.extend(first..first + records),
                    (ParentIds::Transport, before) => {
                        // The difference to the point before with the same text.
                        let last = before.filter(|(other, _)| *other == text).map_or(0, |(_, last)| last);
                        parents.push(first - last);
                        parents.resize(parents.len() + records as usize - 1, 1);
                    }
                }
                texts.resize(texts.len() + records as usize, text);
                before = Some((text, first + records - 1));
            }
        }
        let mut keys = Vec::with_capacity(rows);
        for key in 0..KEYS {
            keys.resize(points * (key + 1), u8::try_from(key).unwrap_or_default());
        }
        let key_texts = Arc::new(StringArray::from_iter_values(self.keys));
        let keys = DictionaryArray::<UInt8Type>::try_new(UInt8Array::from(keys), key_texts)?;
        let sorted = order.iter().filter_map(|text| self.texts.get(usize::from(*text)));
        let sorted = Arc::new(StringArray::from_iter_values(sorted));
        let texts = DictionaryArray::<UInt16Type>::try_new(UInt16Array::from(texts), sorted)?;
        let encoding = match ids {
            ParentIds::Plain => encodings::PLAIN,
            ParentIds::Transport => encodings::QUASI_DELTA,
        };
        let schema = Schema::new(vec![
            Field::new(consts::PARENT_ID, DataType::UInt32, false).with_encoding(encoding),
            Field::new(consts::ATTRIBUTE_KEY, keys.data_type().clone(), false),
            Field::new(consts::ATTRIBUTE_TYPE, DataType::UInt8, false),
            Field::new(consts::ATTRIBUTE_STR, texts.data_type().clone(), true),
        ]);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from(parents)),
            Arc::new(keys),
            Arc::new(UInt8Array::from(vec![TEXT; rows])),
            Arc::new(texts),
        ];
        RecordBatch::try_new(Arc::new(schema), arrays)
    }
}

/// The tables of batches of one number of records.
#[derive(Debug)]
pub(super) struct PointTables {
    /// All but the points.
    shared: OtapArrowRecords,
    ids: ArrayRef,
    parents: ArrayRef,
    schema: SchemaRef,
    time_type: DataType,
    /// What is kept for this number of records alone.
    pub(super) bytes: usize,
}

impl PointTables {
    pub(super) fn new(skeleton: &Skeleton, records: usize) -> Result<Self, ColumnsError> {
        let points = skeleton.columns() * records;
        let count = u32::try_from(records).unwrap_or(u32::MAX);
        let mut shared = skeleton.shared.clone();
        let mut bytes = points * (size_of::<u32>() + size_of::<u16>());
        if let Some(labels) = &skeleton.labels {
            let table = labels.table(count, skeleton.ids).map_err(ColumnsError::arrow("number point attributes"))?;
            bytes += table.get_array_memory_size();
            let set = shared.set(ArrowPayloadType::NumberDpAttrs, table);
            set.map_err(ColumnsError::otap("number point attributes"))?;
        }
        let mut parents = Vec::with_capacity(points);
        let mut before = 0;
        for metric in &skeleton.metrics {
            match skeleton.ids {
                ParentIds::Plain => parents.resize(parents.len() + records, *metric),
                ParentIds::Transport => {
                    // Metrics ascend.
                    parents.push(metric - before);
                    parents.resize(parents.len() + records - 1, 0);
                    before = *metric;
                }
            }
        }
        let ids = 0..u32::try_from(points).unwrap_or(u32::MAX);
        let (ids, encoding) = match skeleton.ids {
            ParentIds::Plain => (UInt32Array::from_iter_values(ids), encodings::PLAIN),
            ParentIds::Transport => (UInt32Array::from_iter_values(ids.map(|id| id.min(1))), encodings::DELTA),
        };
        let time_type = DataType::Timestamp(TimeUnit::Nanosecond, Some(Arc::from("UTC")));
        let schema = Schema::new(vec![
            Field::new(consts::ID, DataType::UInt32, false).with_encoding(encoding),
            Field::new(consts::PARENT_ID, DataType::UInt16, false).with_encoding(encoding),
            Field::new(consts::TIME_UNIX_NANO, time_type.clone(), false),
            Field::new(consts::INT_VALUE, DataType::Int64, true),
        ]);
        let (ids, parents) = (Arc::new(ids), Arc::new(UInt16Array::from(parents)));
        Ok(Self { shared, ids, parents, schema: Arc::new(schema), time_type, bytes })
    }

    /// A batch with these values and times, `doubles` where `values` are null.
    pub(super) fn batch(
        &self,
        times: Vec<i64>,
        values: Int64Array,
        doubles: Option<ArrayRef>,
    ) -> Result<OtapArrowRecords, ColumnsError> {
        let times = TimestampNanosecondArray::from(times).with_data_type(self.time_type.clone());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(5);
        arrays.extend([Arc::clone(&self.ids), Arc::clone(&self.parents), Arc::new(times), Arc::new(values)]);
        let mut schema = Arc::clone(&self.schema);
        if let Some(doubles) = doubles {
            arrays.push(doubles);
            let mut fields = schema.fields().to_vec();
            fields.push(Arc::new(Field::new(consts::DOUBLE_VALUE, DataType::Float64, true)));
            schema = Arc::new(Schema::new(fields));
        }
        let table = RecordBatch::try_new(schema, arrays).map_err(ColumnsError::arrow("number data points"))?;
        let mut records = self.shared.clone();
        let set = records.set(ArrowPayloadType::NumberDataPoints, table);
        set.map_err(ColumnsError::otap("number data points"))?;
        Ok(records)
    }
}
