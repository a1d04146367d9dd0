//! Messages of Arrow's stream format (Arrow columnar format 1.5, "Encapsulated message format"), written without its writer:
//! that one compresses each buffer into a new allocation, aligns to 64 bytes and keeps no buffer for the next time.

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, ListArray, StringArray, StructArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Schema, ToByteSlice as _};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use flatbuffers::FlatBufferBuilder;

use super::compress::Compressor;
use crate::encode::error::EncodeError;
use crate::encode::same::same_buffer;

/// Body and metadata are padded to this.
const ALIGNMENT: usize = 8;

/// A buffer as it was sent last.
#[derive(Debug)]
struct Sent {
    raw: Buffer,
    bytes: Vec<u8>,
}

/// Buffers of the last record batch of a table, compressed: those that are the same again are sent as they are.
#[derive(Debug, Default)]
pub(super) struct SentBuffers(Vec<Sent>);

impl SentBuffers {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// A record batch or dictionary under construction.
#[derive(Debug, Default)]
pub(super) struct Body {
    bytes: Vec<u8>,
    nodes: Vec<arrow_ipc::FieldNode>,
    buffers: Vec<arrow_ipc::Buffer>,
}

/// Writes messages; the room that it uses is kept.
pub(super) struct MessageWriter {
    body: Body,
    builder: FlatBufferBuilder<'static>,
    pub(super) compressor: Compressor,
}

impl std::fmt::Debug for MessageWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MessageWriter").finish_non_exhaustive()
    }
}

impl MessageWriter {
    pub(super) fn new(compressor: Compressor) -> Self {
        Self { body: Body::default(), builder: FlatBufferBuilder::new(), compressor }
    }

    /// Appends the schema, with which a stream begins. Dictionaries are numbered in the order of their fields.
    pub(super) fn schema(&mut self, schema: &Schema, out: &mut Vec<u8>) {
        let mut tracker = DictionaryTracker::new(false);
        let options = IpcWriteOptions::default();
        let data = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options);
        frame(&data.ipc_message, &[], out);
    }

    /// Appends a record batch of these columns. Dictionaries stand in them as their keys.
    pub(super) fn record_batch(
        &mut self,
        columns: &[ArrayRef],
        rows: usize,
        sent: &mut SentBuffers,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.begin();
        for column in columns {
            self.array(column, Some(sent))?;
        }
        sent.0.truncate(self.body.buffers.len());
        let batch = self.header(rows).as_union_value();
        self.finish(arrow_ipc::MessageHeader::RecordBatch, batch, out);
        Ok(())
    }

    /// Appends values to the dictionary with a number, or begins it with them.
    pub(super) fn dictionary(
        &mut self,
        number: i64,
        values: &ArrayRef,
        is_delta: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.begin();
        self.array(values, None)?;
        let data = self.header(values.len());
        let mut dictionary = arrow_ipc::DictionaryBatchBuilder::new(&mut self.builder);
        dictionary.add_id(number);
        dictionary.add_data(data);
        dictionary.add_isDelta(is_delta);
        let dictionary = dictionary.finish().as_union_value();
        self.finish(arrow_ipc::MessageHeader::DictionaryBatch, dictionary, out);
        Ok(())
    }

    fn begin(&mut self) {
        self.body.bytes.clear();
        self.body.nodes.clear();
        self.body.buffers.clear();
        self.builder.reset();
    }

    fn header(&mut self, rows: usize) -> flatbuffers::WIPOffset<arrow_ipc::RecordBatch<'static>> {
        let compression = self.compressor.is_on().then(|| {
            let mut compression = arrow_ipc::BodyCompressionBuilder::new(&mut self.builder);
            compression.add_method(arrow_ipc::BodyCompressionMethod::BUFFER);
            compression.add_codec(arrow_ipc::CompressionType::ZSTD);
            compression.finish()
        });
        let buffers = self.builder.create_vector(&self.body.buffers);
        let nodes = self.builder.create_vector(&self.body.nodes);
        let mut batch = arrow_ipc::RecordBatchBuilder::new(&mut self.builder);
        batch.add_length(rows as i64);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(compression) = compression {
            batch.add_compression(compression);
        }
        batch.finish()
    }

    fn finish(
        &mut self,
        kind: arrow_ipc::MessageHeader,
        header: flatbuffers::WIPOffset<flatbuffers::UnionWIPOffset>,
        out: &mut Vec<u8>,
    ) {
        let mut message = arrow_ipc::MessageBuilder::new(&mut self.builder);
        message.add_version(arrow_ipc::MetadataVersion::V5);
        message.add_header_type(kind);
        message.add_bodyLength(self.body.bytes.len() as i64);
        message.add_header(header);
        let message = message.finish();
        self.builder.finish(message, None);
        frame(self.builder.finished_data(), &self.body.bytes, out);
    }

    /// Nodes and buffers of an array, depth first.
    fn array(&mut self, array: &ArrayRef, mut sent: Option<&mut SentBuffers>) -> Result<(), EncodeError> {
        self.body.nodes.push(arrow_ipc::FieldNode::new(array.len() as i64, array.null_count() as i64));
        self.nulls(array.nulls(), reborrow(&mut sent))?;
        let any = array.as_any();
        match array.data_type() {
            DataType::Boolean => {
                if let Some(array) = any.downcast_ref::<BooleanArray>() {
                    self.buffer(array.values().sliced(), reborrow(&mut sent))?;
                }
            }
            DataType::Utf8 => {
                if let Some(array) = any.downcast_ref::<StringArray>() {
                    let values = self.offsets(array.offsets(), reborrow(&mut sent))?;
                    self.buffer(array.values().slice_with_length(values.start, values.len()), reborrow(&mut sent))?;
                }
            }
            DataType::Binary => {
                if let Some(array) = any.downcast_ref::<BinaryArray>() {
                    let values = self.offsets(array.offsets(), reborrow(&mut sent))?;
                    self.buffer(array.values().slice_with_length(values.start, values.len()), reborrow(&mut sent))?;
                }
            }
            DataType::FixedSizeBinary(_) => {
                if let Some(array) = any.downcast_ref::<FixedSizeBinaryArray>() {
                    let data = array.to_data();
                    let width = usize::try_from(array.value_length()).unwrap_or_default();
                    let values = data.buffers().first().cloned().unwrap_or_else(|| Buffer::from(&[]));
                    let start = (data.offset() * width).min(values.len());
                    let length = (data.len() * width).min(values.len() - start);
                    self.buffer(values.slice_with_length(start, length), reborrow(&mut sent))?;
                }
            }
            DataType::List(_) => {
                if let Some(array) = any.downcast_ref::<ListArray>() {
                    let items = self.offsets(array.offsets(), reborrow(&mut sent))?;
                    self.array(&array.values().slice(items.start, items.len()), reborrow(&mut sent))?;
                }
            }
            DataType::Struct(_) => {
                if let Some(array) = any.downcast_ref::<StructArray>() {
                    for column in array.columns() {
                        self.array(column, reborrow(&mut sent))?;
                    }
                }
            }
            _ => {
                let data = array.to_data();
                let width = array.data_type().primitive_width().unwrap_or(1);
                let values = data.buffers().first().cloned().unwrap_or_else(|| Buffer::from(&[]));
                let start = (data.offset() * width).min(values.len());
                let length = (data.len() * width).min(values.len() - start);
                self.values(values.slice_with_length(start, length), width, reborrow(&mut sent))?;
            }
        }
        Ok(())
    }

    fn nulls(&mut self, nulls: Option<&NullBuffer>, sent: Option<&mut SentBuffers>) -> Result<(), EncodeError> {
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => self.buffer(nulls.inner().sliced(), sent),
            None => self.buffer(Buffer::from(&[]), sent),
        }
    }

    /// Offsets, which begin at 0 in a message; gives where the values stand.
    fn offsets(
        &mut self,
        offsets: &OffsetBuffer<i32>,
        sent: Option<&mut SentBuffers>,
    ) -> Result<std::ops::Range<usize>, EncodeError> {
        let place = |offset: Option<&i32>| offset.and_then(|offset| usize::try_from(*offset).ok()).unwrap_or_default();
        let (start, end) = (place(offsets.first()), place(offsets.last()));
        if start == 0 {
            let inner = offsets.inner();
            self.buffer(inner.inner().clone(), sent)?;
        } else {
            let first = offsets.first().copied().unwrap_or_default();
            let moved: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
            self.buffer(Buffer::from(moved.to_byte_slice()), sent)?;
        }
        Ok(start..end)
    }

    /// Appends a buffer of bytes, bits or offsets to the body.
    fn buffer(&mut self, raw: Buffer, sent: Option<&mut SentBuffers>) -> Result<(), EncodeError> {
        self.values(raw, 1, sent)
    }

    /// Appends a buffer of values of `width` bytes to the body.
    fn values(&mut self, raw: Buffer, width: usize, sent: Option<&mut SentBuffers>) -> Result<(), EncodeError> {
        let Body { bytes, buffers, .. } = &mut self.body;
        let start = bytes.len();
        let number = buffers.len();
        match sent.filter(|_| self.compressor.is_on()) {
            Some(SentBuffers(sent)) => match sent.get_mut(number) {
                Some(known) if same_buffer(&known.raw, &raw) => bytes.extend_from_slice(&known.bytes),
                known => {
                    self.compressor.append(&raw, width, bytes)?;
                    let written = bytes.get(start..).unwrap_or_default();
                    match known {
                        Some(known) => {
                            known.raw = raw;
                            known.bytes.clear();
                            known.bytes.extend_from_slice(written);
                        }
                        None => sent.push(Sent { raw, bytes: written.to_vec() }),
                    }
                }
            },
            None => self.compressor.append(&raw, width, bytes)?,
        }
        buffers.push(arrow_ipc::Buffer::new(start as i64, (bytes.len() - start) as i64));
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        Ok(())
    }
}

fn reborrow<'s>(sent: &'s mut Option<&mut SentBuffers>) -> Option<&'s mut SentBuffers> {
    sent.as_deref_mut()
}

/// Appends a message: marker, length of the metadata, metadata, body.
fn frame(metadata: &[u8], body: &[u8], out: &mut Vec<u8>) {
    const PREFIX: usize = 8;
    let padded = (PREFIX + metadata.len()).next_multiple_of(ALIGNMENT) - PREFIX;
    out.reserve(PREFIX + padded + body.len());
    out.extend_from_slice(&[0xff; 4]);
    out.extend_from_slice(&i32::try_from(padded).unwrap_or(i32::MAX).to_le_bytes());
    out.extend_from_slice(metadata);
    out.resize(out.len() + padded - metadata.len(), 0);
    out.extend_from_slice(body);
}
