//! Status codes of gRPC and OTAP, which are the same numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The names by number (gRPC, "Status codes and their use"). OTAP spells number 1 with one L.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// A status code, known or not. In YAML by name or number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub i32);

impl Code {
    /// Success.
    pub const OK: Self = Self(0);
    /// The data is wrong.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// There was not enough time.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// Too much at the moment, or for ever.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// Try again.
    pub const ABORTED: Self = Self(10);
    /// Too large, says tonic.
    pub const OUT_OF_RANGE: Self = Self(11);
    /// There is no such service.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// The server is broken.
    pub const INTERNAL: Self = Self(13);
    /// Try again.
    pub const UNAVAILABLE: Self = Self(14);

    /// The code with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "CANCELED" { "CANCELLED" } else { name };
        let number = NAMES.iter().position(|known| *known == name)?;
        i32::try_from(number).ok().map(Self)
    }

    /// Whether a client of OTLP may send the same data again (OTLP specification, "Failures"). RESOURCE_EXHAUSTED counts
    /// as such, with RetryInfo or without, since clients differ.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(self.0, 1 | 4 | 8 | 10 | 11 | 14 | 15)
    }

    /// Whether a producer of OTAP may send the same batch again (OTAP specification, "BatchStatus").
    #[must_use]
    pub fn is_retryable_batch_status(self) -> bool {
        matches!(self.0, 1 | 4 | 8 | 10 | 14)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|number| NAMES.get(number)) {
            Some(name) => formatter.write_str(name),
            None => self.0.fmt(formatter),
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match usize::try_from(self.0).ok().and_then(|number| NAMES.get(number)) {
            Some(name) => serializer.serialize_str(name),
            None => serializer.serialize_i32(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Code;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a number or one of {}", NAMES.join(", "))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Code, E> {
        Code::from_name(name).ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Code, E> {
        i32::try_from(number).map(Code).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Code, E> {
        i32::try_from(number).map(Code).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }
}
