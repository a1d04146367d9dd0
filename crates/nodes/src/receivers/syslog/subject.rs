//! The subject of a client certificate as text.

use std::fmt::Write;

use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::asn1_rs::ToDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Short names of RFC 4514 section 3 by object identifier.
const SHORT_NAMES: [(&str, &str); 9] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
];

/// The subject of a certificate in DER as RFC 4514 writes it (`CN=host,O=Example`); of a certificate without one, its
/// alternative names (`DNS:host,IP:192.0.2.1`). `None` if it has neither, or cannot be read.
pub(super) fn subject(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let text = distinguished_name(certificate.subject());
    let text = if text.is_empty() { alternative_names(&certificate) } else { text };
    (!text.is_empty()).then_some(text)
}

/// RFC 4514 section 2: the last component first.
fn distinguished_name(name: &X509Name<'_>) -> String {
    let components: Vec<_> = name
        .iter()
        .map(|component| component.iter().map(attribute).collect::<Vec<_>>().join("+"))
        .filter(|component| !component.is_empty())
        .collect();
    components.into_iter().rev().collect::<Vec<_>>().join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let oid = attribute.attr_type().to_id_string();
    let short = SHORT_NAMES.iter().find(|(known, _)| *known == oid).map(|(_, short)| *short);
    match (short, attribute.as_str()) {
        (Some(short), Ok(value)) => format!("{short}={}", escaped(value)),
        // Values of types without a short name are written as they are encoded (section 2.4).
        (short, _) => {
            let mut text = format!("{}=#", short.unwrap_or(&oid));
            for byte in attribute.attr_value().to_der_vec_raw().unwrap_or_default() {
                let _ = write!(text, "{byte:02x}");
            }
            text
        }
    }
}

/// Section 2.4.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (at, char) in value.chars().enumerate() {
        match char {
            '\0' => text.push_str("\\00"),
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => text.extend(['\\', char]),
            ' ' if at == 0 || at == last => text.push_str("\\ "),
            '#' if at == 0 => text.push_str("\\#"),
            _ => text.push(char),
        }
    }
    text
}

fn alternative_names(certificate: &X509Certificate<'_>) -> String {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else { return String::new() };
    let names = extension.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(format!("DNS:{}", escaped(name))),
        GeneralName::RFC822Name(name) => Some(format!("email:{}", escaped(name))),
        GeneralName::URI(uri) => Some(format!("URI:{}", escaped(uri))),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string());
            let v6 = || <[u8; 16]>::try_from(*bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string());
            v4.or_else(|_| v6()).ok().map(|address| format!("IP:{address}"))
        }
        _ => None,
    });
    names.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair, SanType};

    use super::*;

    fn certificate(names: &[(DnType, &str)], alternative: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), DnValue::Utf8String((*value).to_owned()));
        }
        params.subject_alt_names = alternative;
        let key = KeyPair::generate().expect("key");
        params.self_signed(&key).expect("certificate").der().to_vec()
    }

    /// The most specific name comes first; what means something in the form is escaped; unknown types are hex.
    #[test]
    fn subjects_are_written_as_rfc_4514_says() {
        let der = certificate(
            &[
                (DnType::CountryName, "NL"),
                (DnType::OrganizationName, "Example, \"Inc\"; a+b<c>\\"),
                (DnType::CustomDnType(vec![2, 5, 4, 5]), "7"),
                (DnType::CommonName, "#device 1 "),
            ],
            Vec::new(),
        );
        assert_eq!(
            subject(&der).expect("subject"),
            r#"CN=\#device 1\ ,2.5.4.5=#0c0137,O=Example\, \"Inc\"\; a\+b\<c\>\\,C=NL"#
        );
    }

    /// A certificate without a subject is known by its alternative names; one with neither has no name.
    #[test]
    fn alternative_names_stand_in() {
        let names = vec![
            SanType::DnsName("a.example".try_into().expect("name")),
            SanType::IpAddress("192.0.2.7".parse().expect("address")),
            SanType::IpAddress("2001:db8::7".parse().expect("address")),
            SanType::Rfc822Name("ops@example".try_into().expect("name")),
        ];
        let der = certificate(&[], names);
        assert_eq!(subject(&der).as_deref(), Some("DNS:a.example,IP:192.0.2.7,IP:2001:db8::7,email:ops@example"));
        assert_eq!(subject(&certificate(&[], Vec::new())), None);
    }

    /// Bytes that are no certificate have no subject, wherever they break off.
    #[test]
    fn broken_certificates_have_no_subject() {
        let der = certificate(&[(DnType::CommonName, "a")], Vec::new());
        for end in 0..der.len() {
            assert_eq!(subject(&der[..end]), None, "cut at {end}");
        }
    }
}
