//! Attributes of log records.

use arrow::array::{TimestampNanosecondArray, UInt16Array};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::join::Parents;
use super::{Lookup, column, complete, plain, time_at};
use crate::ColumnsError;
use crate::quantile::number::number;
use crate::quantile::observations::{Observations, index};
use crate::quantile::query::{TextNumbers, TimeSource};
use crate::quantile::reader::Reader;

pub(super) fn read(
    reader: &mut Reader,
    records: &OtapArrowRecords,
    text: TextNumbers,
    now: i64,
    out: &mut Observations,
) -> Result<(), ColumnsError> {
    let Some(root) = plain(records, records.root_payload_type(), "logs")? else { return Ok(()) };
    let root = &root;
    let rows = root.num_rows();
    let ids = column::<UInt16Array>(root, consts::ID);
    let parents = || match ids {
        Some(ids) => Parents::new(ids.iter().map(|id| id.map(u32::from))),
        None => Parents::new(std::iter::repeat_n(None, rows)),
    };
    let lookup = Lookup::new(&reader.bound, records, root, ArrowPayloadType::LogAttrs, parents, 0..index(rows))?;
    let event = column::<TimestampNanosecondArray>(root, consts::TIME_UNIX_NANO);
    let observed = column::<TimestampNanosecondArray>(root, consts::OBSERVED_TIME_UNIX_NANO);
    let Some(bound) = &reader.bound.value else { return Ok(()) };
    for row in 0..rows {
        let seen = || time_at(observed, row);
        let time = || match reader.query.time {
            TimeSource::Event => time_at(event, row).or_else(seen),
            TimeSource::Observed => seen(),
        };
        let value = number(lookup.value(bound, row), text);
        let _ = out.judge(value, reader.query.non_finite, || time().unwrap_or(now));
    }
    complete(reader, &lookup, out);
    Ok(())
}
