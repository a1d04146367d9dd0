//! Attributes of the log records of a request.

use super::wire::{Content, Fault, Fields, messages};
use super::{Walk, fields};
use crate::quantile::number::number;
use crate::quantile::query::{TextNumbers, TimeSource};
use crate::quantile::reader::{RECORD, RESOURCE, SCOPE};

pub(super) fn request<'a>(walk: &mut Walk<'_, 'a>, request: &'a [u8], text: TextNumbers) -> Result<(), Fault> {
    for resource in messages(request, fields::FIRST) {
        let resource = resource?;
        walk.owner(RESOURCE, messages(resource, fields::FIRST), fields::RESOURCE_ATTRIBUTES)?;
        for scope in messages(resource, fields::CHILDREN) {
            let scope = scope?;
            walk.owner(SCOPE, messages(scope, fields::FIRST), fields::SCOPE_ATTRIBUTES)?;
            for record in messages(scope, fields::CHILDREN) {
                log_record(walk, record?, text)?;
            }
        }
    }
    Ok(())
}

fn log_record<'a>(walk: &mut Walk<'_, 'a>, record: &'a [u8], text: TextNumbers) -> Result<(), Fault> {
    let (mut event, mut observed) = (0, 0);
    walk.slots.clear(RECORD);
    let mut content = Fields::new(record);
    while let Some((number, field)) = content.next()? {
        match (number, field) {
            (fields::LOG_TIME, Content::Fixed64(time)) => event = time.cast_signed(),
            (fields::LOG_OBSERVED_TIME, Content::Fixed64(time)) => observed = time.cast_signed(),
            (fields::LOG_ATTRIBUTES, Content::Bytes(attribute)) => {
                walk.slots.take(RECORD, &walk.reader.bound.wanted[RECORD], attribute)?;
            }
            (fields::LOG_TIME | fields::LOG_OBSERVED_TIME | fields::LOG_ATTRIBUTES, _) => {
                return Err(content.wrong_type());
            }
            _ => {}
        }
    }
    let time = match walk.reader.query.time {
        TimeSource::Event if event != 0 => event,
        _ => observed,
    };
    let Some(bound) = walk.reader.bound.value.clone() else { return Ok(()) };
    let value = number(walk.scalar(&bound)?, text);
    if walk.judge(value, time) && walk.weigh()? {
        let series = walk.series()?;
        walk.put(series);
    }
    Ok(())
}
