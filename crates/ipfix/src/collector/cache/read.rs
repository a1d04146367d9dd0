//! Reads snapshots.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::collector::cache::{
    CacheError, CacheFault, Exporter, FACT_APPLICATION, FACT_ELEMENT, FACT_INTERFACE, FACT_SAMPLER, FACT_SYSTEM_INIT,
    FACT_VRF, FORMAT_VERSION, HEAD_BYTES, MAGIC, TAG_EXPORTER, TAG_FACT, TAG_TEMPLATE,
};
use crate::elements::{DataType, Semantics};
use crate::field::{ENTERPRISE_BIT, FieldSpec};
use crate::knowledge::{Fact, MAX_APPLICATION_ID_BYTES, MAX_NAME_BYTES, SamplerKey};
use crate::message::Version;
use crate::session::TemplateKey;
use crate::template::{Kind, Template, TemplateError};

/// The exporters of a snapshot. Takes memory in proportion to its bytes.
pub(super) fn snapshot(bytes: &[u8]) -> Result<Vec<Exporter>, CacheError> {
    let mut reader = Reader { bytes, at: 0 };
    if !bytes.starts_with(&MAGIC) {
        return Err(reader.error(CacheFault::Magic));
    }
    reader.at = MAGIC.len();
    let version = reader.u8()?;
    if version != FORMAT_VERSION {
        return Err(CacheError { offset: MAGIC.len(), fault: CacheFault::Version(version) });
    }
    let expected = reader.u32()?;
    let found = crc32c::crc32c(bytes.get(HEAD_BYTES..).unwrap_or_default());
    if expected != found {
        return Err(CacheError { offset: MAGIC.len() + 1, fault: CacheFault::Checksum { expected, found } });
    }
    let mut exporters: Vec<Exporter> = Vec::new();
    while reader.at < bytes.len() {
        let start = reader.at;
        let at_start = |fault| CacheError { offset: start, fault };
        match reader.u8()? {
            TAG_EXPORTER => exporters.push(reader.exporter()?),
            TAG_TEMPLATE => {
                let template = reader.template().map_err(|error| error.or_at(start))?;
                exporters.last_mut().ok_or(at_start(CacheFault::NoExporter))?.templates.push(template);
            }
            TAG_FACT => {
                let fact = reader.fact()?;
                exporters.last_mut().ok_or(at_start(CacheFault::NoExporter))?.facts.push(fact);
            }
            code => return Err(at_start(CacheFault::Code { what: "item", code: code.into() })),
        }
    }
    Ok(exporters)
}

/// Either an error with its place, or a template that is none.
enum Failed {
    Cache(CacheError),
    Template(TemplateError),
}

impl Failed {
    fn or_at(self, offset: usize) -> CacheError {
        match self {
            Self::Cache(error) => error,
            Self::Template(error) => CacheError { offset, fault: error.into() },
        }
    }
}

impl From<CacheError> for Failed {
    fn from(error: CacheError) -> Self {
        Self::Cache(error)
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn error(&self, fault: CacheFault) -> CacheError {
        CacheError { offset: self.at, fault }
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], CacheError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(taken) = rest.get(..length) else {
            return Err(self.error(CacheFault::Truncated { needed: length - rest.len() }));
        };
        self.at += length;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], CacheError> {
        let mut array = [0; LENGTH];
        array.copy_from_slice(self.take(LENGTH)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, CacheError> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, CacheError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, CacheError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, CacheError> {
        self.array().map(u64::from_be_bytes)
    }

    /// One byte that stands for something.
    fn code<T>(&mut self, what: &'static str, meaning: impl FnOnce(u8) -> Option<T>) -> Result<T, CacheError> {
        let offset = self.at;
        let code = self.u8()?;
        meaning(code).ok_or(CacheError { offset, fault: CacheFault::Code { what, code: code.into() } })
    }

    fn exporter(&mut self) -> Result<Exporter, CacheError> {
        let four = self.code("address family", |code| match code {
            4 => Some(true),
            6 => Some(false),
            _ => None,
        })?;
        let address: IpAddr = if four { self.array::<4>()?.into() } else { self.array::<16>()?.into() };
        let listener = self.u32()?;
        Ok(Exporter { address: address.to_canonical(), listener, templates: Vec::new(), facts: Vec::new() })
    }

    fn template(&mut self) -> Result<(TemplateKey, Template), Failed> {
        let version = self.code("protocol of templates", |code| match code {
            9 => Some(Version::V9),
            10 => Some(Version::Ipfix),
            _ => None,
        })?;
        let domain = self.u32()?;
        let kind = self.code("kind of template", |code| match code {
            0 => Some(Kind::Flow),
            1 => Some(Kind::Options),
            _ => None,
        })?;
        let id = self.u16()?;
        let (count, scope_fields) = (usize::from(self.u16()?), usize::from(self.u16()?));
        if scope_fields > count || (kind == Kind::Flow && scope_fields > 0) {
            return Err(Failed::Template(TemplateError::ScopeCount { id, scope_fields, fields: count }));
        }
        let mut fields = Vec::new();
        for index in 0..count {
            let number = self.u16()?;
            let length = self.u16()?;
            let scope = index < scope_fields;
            fields.push(match version {
                Version::Ipfix if number & ENTERPRISE_BIT != 0 => {
                    FieldSpec::ipfix(number & !ENTERPRISE_BIT, self.u32()?, length, scope)
                }
                Version::Ipfix => FieldSpec::ipfix(number, 0, length, scope),
                _ if scope => FieldSpec::netflow_v9_scope(number, length),
                _ => FieldSpec::netflow_v9(number, length),
            });
        }
        let template = Template::new(id, kind, fields).map_err(Failed::Template)?;
        Ok((TemplateKey { version, domain, id }, template))
    }

    fn fact(&mut self) -> Result<(u32, Fact<'static>), CacheError> {
        let domain = self.u32()?;
        let kind = self.code("kind of fact", |code| (code <= FACT_ELEMENT).then_some(code))?;
        let fact = match kind {
            FACT_SYSTEM_INIT => Fact::SystemInit(self.array().map(i64::from_be_bytes)?),
            FACT_SAMPLER => self.sampler()?,
            FACT_INTERFACE => Fact::Interface(self.u64()?, self.text()?),
            FACT_VRF => Fact::Vrf(self.u64()?, self.text()?),
            FACT_APPLICATION => {
                let id = self.short(MAX_APPLICATION_ID_BYTES)?;
                Fact::Application(Cow::Owned(id.to_vec()), self.text()?)
            }
            _ => {
                let key = (self.u32()?, self.u16()?);
                let data_type = self.code("data type", |code| DataType::from_number(code.into()))?;
                let semantics = self.code("semantics", |code| Semantics::from_number(code.into()))?;
                Fact::Element(key, self.text()?, data_type, semantics)
            }
        };
        Ok((domain, fact))
    }

    fn sampler(&mut self) -> Result<Fact<'static>, CacheError> {
        let offset = self.at;
        let kind = self.u8()?;
        let number = self.u64()?;
        let wrong = |what, code| CacheError { offset, fault: CacheFault::Code { what, code } };
        let key = match kind {
            0 => SamplerKey::All,
            1 => SamplerKey::Selector(number),
            2 => SamplerKey::Interface(number),
            3 => SamplerKey::LineCard(number),
            4 => SamplerKey::Template(u16::try_from(number).map_err(|_| wrong("template id", number))?),
            kind => return Err(wrong("sampler", kind.into())),
        };
        let rate = self.array().map(f64::from_be_bytes)?;
        Ok(Fact::Sampler(key, Some(rate).filter(|rate| rate.is_finite() && *rate > 0.0)))
    }

    /// Bytes behind their length.
    fn short(&mut self, limit: usize) -> Result<&'b [u8], CacheError> {
        let offset = self.at;
        let length = usize::from(self.u16()?);
        if length > limit {
            let code = u64::try_from(length).unwrap_or(u64::MAX);
            return Err(CacheError { offset, fault: CacheFault::Code { what: "length of a text", code } });
        }
        self.take(length)
    }

    fn text(&mut self) -> Result<Cow<'static, str>, CacheError> {
        let offset = self.at;
        let bytes = self.short(MAX_NAME_BYTES)?;
        let text = std::str::from_utf8(bytes).map_err(|_| CacheError { offset, fault: CacheFault::Text })?;
        Ok(Cow::Owned(text.to_owned()))
    }
}
