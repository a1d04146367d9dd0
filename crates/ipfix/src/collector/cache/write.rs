//! Writes snapshots.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::collector::cache::{
    Definitions, FACT_APPLICATION, FACT_ELEMENT, FACT_INTERFACE, FACT_SAMPLER, FACT_SYSTEM_INIT, FACT_VRF,
    FORMAT_VERSION, MAGIC, TAG_EXPORTER, TAG_FACT, TAG_TEMPLATE,
};
use crate::field::ENTERPRISE_BIT;
use crate::knowledge::{Fact, Facts, SamplerKey};
use crate::message::Version;
use crate::template::{Kind, Template};

/// Templates by exporter (address and listener) and facts by address and domain, as bytes.
pub(super) fn snapshot(
    templates: &BTreeMap<(IpAddr, u32), Definitions>,
    facts: &BTreeMap<IpAddr, BTreeMap<u32, Facts>>,
) -> Vec<u8> {
    let mut body = Vec::new();
    for ((address, listener), definitions) in templates {
        exporter(&mut body, *address, *listener);
        for ((version, domain, _), definition) in definitions {
            template(&mut body, *version, *domain, definition);
        }
    }
    for (address, domains) in facts {
        exporter(&mut body, *address, 0);
        for (domain, facts) in domains {
            // Their order says nothing, so it is made one that does not change.
            let mut items: Vec<Vec<u8>> = facts.iter().map(|one| fact(*domain, &one)).collect();
            items.sort_unstable();
            body.extend(items.into_iter().flatten());
        }
    }
    let mut bytes = MAGIC.to_vec();
    bytes.push(FORMAT_VERSION);
    bytes.extend(crc32c::crc32c(&body).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn exporter(body: &mut Vec<u8>, address: IpAddr, listener: u32) {
    body.push(TAG_EXPORTER);
    match address {
        IpAddr::V4(address) => {
            body.push(4);
            body.extend(address.octets());
        }
        IpAddr::V6(address) => {
            body.push(6);
            body.extend(address.octets());
        }
    }
    body.extend(listener.to_be_bytes());
}

fn template(body: &mut Vec<u8>, version: Version, domain: u32, template: &Template) {
    let protocol = match version {
        Version::Ipfix => 10,
        Version::V9 => 9,
        // Its template is built in.
        Version::V5 => return,
    };
    let kind = match template.kind() {
        Kind::Flow => 0,
        Kind::Options => 1,
    };
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    body.extend([TAG_TEMPLATE, protocol]);
    body.extend(domain.to_be_bytes());
    body.push(kind);
    body.extend(template.id().to_be_bytes());
    body.extend(count(template.fields().len()).to_be_bytes());
    body.extend(count(template.scope_field_count()).to_be_bytes());
    for field in template.fields() {
        let bit = if field.enterprise == 0 { 0 } else { ENTERPRISE_BIT };
        body.extend((field.id | bit).to_be_bytes());
        body.extend(field.length.to_be_bytes());
        if field.enterprise != 0 {
            body.extend(field.enterprise.to_be_bytes());
        }
    }
}

fn fact(domain: u32, fact: &Fact<'_>) -> Vec<u8> {
    let mut item = vec![TAG_FACT];
    let body = &mut item;
    body.extend(domain.to_be_bytes());
    match fact {
        Fact::SystemInit(time) => {
            body.push(FACT_SYSTEM_INIT);
            body.extend(time.to_be_bytes());
        }
        Fact::Sampler(key, rate) => {
            let (kind, number): (u8, u64) = match *key {
                SamplerKey::All => (0, 0),
                SamplerKey::Selector(number) => (1, number),
                SamplerKey::Interface(number) => (2, number),
                SamplerKey::LineCard(number) => (3, number),
                SamplerKey::Template(id) => (4, id.into()),
            };
            body.extend([FACT_SAMPLER, kind]);
            body.extend(number.to_be_bytes());
            body.extend(rate.unwrap_or_default().to_be_bytes());
        }
        Fact::Interface(index, name) => {
            body.push(FACT_INTERFACE);
            body.extend(index.to_be_bytes());
            text(body, name.as_bytes());
        }
        Fact::Vrf(id, name) => {
            body.push(FACT_VRF);
            body.extend(id.to_be_bytes());
            text(body, name.as_bytes());
        }
        Fact::Application(id, name) => {
            body.push(FACT_APPLICATION);
            text(body, id);
            text(body, name.as_bytes());
        }
        Fact::Element((enterprise, id), name, data_type, semantics) => {
            body.push(FACT_ELEMENT);
            body.extend(enterprise.to_be_bytes());
            body.extend(id.to_be_bytes());
            body.extend([data_type.number(), semantics.number()]);
            text(body, name.as_bytes());
        }
    }
    item
}

/// A text behind its length; what is kept of texts is short.
fn text(body: &mut Vec<u8>, text: &[u8]) {
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    body.extend(length.to_be_bytes());
    body.extend(text.iter().take(length.into()));
}
