//! Number data points of the metrics of a request.

use super::wire::{Content, Fault, Fields, Parts, messages};
use super::{Walk, fields};
use crate::quantile::observations::Fate;
use crate::quantile::query::{TimeSource, ValueSource, name_matches};
use crate::quantile::reader::{RECORD, RESOURCE, SCOPE};

/// `AggregationTemporality`.
const DELTA: u64 = 1;
/// `DataPointFlags`.
const NO_RECORDED_VALUE: u64 = 1;

pub(super) fn request<'a>(walk: &mut Walk<'_, 'a>, request: &'a [u8]) -> Result<(), Fault> {
    for resource in messages(request, fields::FIRST) {
        let resource = resource?;
        walk.owner(RESOURCE, messages(resource, fields::FIRST), fields::RESOURCE_ATTRIBUTES)?;
        for scope in messages(resource, fields::CHILDREN) {
            let scope = scope?;
            walk.owner(SCOPE, messages(scope, fields::FIRST), fields::SCOPE_ATTRIBUTES)?;
            for metric in messages(scope, fields::CHILDREN) {
                self::metric(walk, metric?)?;
            }
        }
    }
    Ok(())
}

/// The field in which a metric has its data.
pub(in crate::quantile) fn kind_of(metric: &[u8]) -> Result<Option<u32>, Fault> {
    Ok(head(metric)?.1.map(|(kind, _)| kind))
}

/// The field in which a metric has its data, and the data.
type Data<'a> = (u32, Parts<'a>);

/// The name of a metric, its kind and data.
fn head(metric: &[u8]) -> Result<(&[u8], Option<Data<'_>>), Fault> {
    // The choice of protobuf that was made last.
    let mut data: Option<Data<'_>> = None;
    let mut content = Fields::new(metric);
    let mut name = content.bytes_if(fields::METRIC_NAME).unwrap_or_default();
    while let Some((number, field)) = content.next()? {
        match (number, field) {
            (fields::METRIC_NAME, Content::Bytes(bytes)) => name = bytes,
            (
                fields::METRIC_GAUGE
                | fields::METRIC_SUM
                | fields::METRIC_HISTOGRAM
                | fields::METRIC_EXPONENTIAL_HISTOGRAM
                | fields::METRIC_SUMMARY,
                Content::Bytes(first),
            ) => {
                // More of the same belongs to what is there already.
                data = data.filter(|(kind, _)| *kind == number);
                data.get_or_insert_with(|| (number, Parts::new(first, number, content.rest())));
            }
            (fields::METRIC_NAME | fields::METRIC_GAUGE..=fields::METRIC_SUMMARY, _) => {
                return Err(content.wrong_type());
            }
            _ => {}
        }
    }
    Ok((name, data))
}

fn metric<'a>(walk: &mut Walk<'_, 'a>, metric: &'a [u8]) -> Result<(), Fault> {
    let (name, data) = head(metric)?;
    let Some((kind, data)) = data else { return Ok(()) };
    if !matches!(kind, fields::METRIC_GAUGE | fields::METRIC_SUM) {
        for part in data.iter() {
            for point in messages(part?, fields::DATA_POINTS) {
                let _ = point?;
                walk.out.other_points += 1;
            }
        }
        return Ok(());
    }
    let ValueSource::Metric { names } = &walk.reader.query.source else { return Ok(()) };
    let refused = if !name_matches(names, name) {
        Some(Fate::NoValue)
    } else if kind == fields::METRIC_SUM && temporality(&data)? != DELTA {
        Some(Fate::Cumulative)
    } else {
        None
    };
    for part in data.iter() {
        for point in messages(part?, fields::DATA_POINTS) {
            let point = point?;
            match refused {
                Some(fate) => walk.out.fates.push(fate),
                None => self::point(walk, point)?,
            }
        }
    }
    Ok(())
}

/// The temporality of a sum, which may stand behind its points.
fn temporality(data: &Parts<'_>) -> Result<u64, Fault> {
    let mut temporality = 0;
    for part in data.iter() {
        let mut content = Fields::new(part?);
        while let Some((number, field)) = content.next()? {
            match (number, field) {
                (fields::SUM_TEMPORALITY, Content::Varint(value)) => temporality = value,
                (fields::SUM_TEMPORALITY, _) => return Err(content.wrong_type()),
                _ => {}
            }
        }
    }
    Ok(temporality)
}

fn point<'a>(walk: &mut Walk<'_, 'a>, point: &'a [u8]) -> Result<(), Fault> {
    let (mut value, mut time, mut flags) = (Err(Fate::NotANumber), 0, 0);
    let mut attributes = Stretch::default();
    let mut content = Fields::new(point);
    // The usual order, which needs few decisions. What is left, in whatever order, is read field by field.
    let _ = content.fixed64_if(fields::POINT_START);
    if let Some(nanos) = content.fixed64_if(fields::POINT_TIME) {
        time = nanos.cast_signed();
    }
    if let Some(bits) = content.fixed64_if(fields::POINT_DOUBLE) {
        value = Ok(f64::from_bits(bits));
    }
    attributes.from = content.rest().len();
    while content.bytes_if(fields::POINT_ATTRIBUTES).is_some() {}
    attributes.to = content.rest().len();
    loop {
        let from = content.rest().len();
        let Some((number, field)) = content.next()? else { break };
        match (number, field) {
            (fields::POINT_ATTRIBUTES, Content::Bytes(_)) => attributes.add(from, content.rest().len()),
            (fields::POINT_TIME, Content::Fixed64(nanos)) => time = nanos.cast_signed(),
            (fields::POINT_DOUBLE, Content::Fixed64(bits)) => value = Ok(f64::from_bits(bits)),
            #[allow(clippy::cast_precision_loss, reason = "values above 2^53 are documented to lose their last bits")]
            (fields::POINT_INT, Content::Fixed64(bits)) => value = Ok(bits.cast_signed() as f64),
            (fields::POINT_FLAGS, Content::Varint(bits)) => flags = bits,
            (
                fields::POINT_TIME
                | fields::POINT_DOUBLE
                | fields::POINT_INT
                | fields::POINT_ATTRIBUTES
                | fields::POINT_FLAGS,
                _,
            ) => return Err(content.wrong_type()),
            _ => {}
        }
    }
    if flags & NO_RECORDED_VALUE != 0 {
        value = Err(Fate::NotANumber);
    }
    let time = match walk.reader.query.time {
        TimeSource::Event => time,
        TimeSource::Observed => 0,
    };
    if !walk.judge(value, time) {
        return Ok(());
    }
    let by_memo = walk.by_memo && attributes.is_one;
    let attributes = &point[point.len() - attributes.from..point.len() - attributes.to];
    let series = match walk.settled {
        Some(series) => series,
        None if by_memo => match walk.remembered(attributes) {
            Ok(series) => series,
            Err(hash) => {
                let series = series(walk, attributes)?;
                walk.reader.memo.learn(hash, walk.owner, attributes, series);
                series
            }
        },
        None => series(walk, attributes)?,
    };
    if walk.weigh()? {
        walk.put(series);
    }
    Ok(())
}

/// The number of the series of a point, from its attributes.
#[inline(never)]
fn series<'a>(walk: &mut Walk<'_, 'a>, attributes: &'a [u8]) -> Result<u32, Fault> {
    read_attributes(walk, attributes)?;
    let series = walk.series()?;
    if walk.reader.bound.wanted[RECORD].is_empty() {
        walk.settled = Some(series);
    }
    Ok(series)
}

/// Puts the wanted ones of the attributes among the fields of a point into the slots.
fn read_attributes<'a>(walk: &mut Walk<'_, 'a>, among: &'a [u8]) -> Result<(), Fault> {
    let wanted = &walk.reader.bound.wanted[RECORD];
    if !wanted.is_empty() {
        walk.slots.clear(RECORD);
        for attribute in messages(among, fields::POINT_ATTRIBUTES) {
            walk.slots.take(RECORD, wanted, attribute?)?;
        }
    }
    Ok(())
}

/// Where the attributes are among the fields of a point, in bytes before its end.
struct Stretch {
    from: usize,
    to: usize,
    /// Whether there is nothing else in between.
    is_one: bool,
}

impl Default for Stretch {
    fn default() -> Self {
        Self { from: 0, to: 0, is_one: true }
    }
}

impl Stretch {
    #[inline(always)]
    fn add(&mut self, from: usize, to: usize) {
        if self.from == self.to {
            self.from = from;
        } else {
            self.is_one &= self.to == from;
        }
        self.to = to;
    }
}
