//! Facts from options data, of one session and observation domain.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::elements::{DataType, Semantics};
use crate::knowledge::DescribedElement;
use crate::knowledge::snapshot::SnapshotMap;

/// Longest name that is kept, in bytes. Longer ones are cut.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// Longest applicationId that is kept, in bytes.
pub(crate) const MAX_APPLICATION_ID_BYTES: usize = 64;

/// Numbers the states of element descriptions over all exporters; 0 is for "none".
static ELEMENTS_GENERATION: AtomicU64 = AtomicU64::new(1);

/// What a sampling rate holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SamplerKey {
    /// Records that name the sampler by samplerId or selectorId.
    Selector(u64),
    /// Records of an interface.
    Interface(u64),
    /// Records of a line card.
    LineCard(u64),
    /// Records of a template.
    Template(u16),
    /// All records: the options data had no scope narrower than the exporter.
    All,
}

/// One thing that options data says. An empty name, and no rate, take back what was said before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fact<'a> {
    /// When the exporter started, in nanoseconds since 1970.
    SystemInit(i64),
    /// "One packet in so many".
    Sampler(SamplerKey, Option<f64>),
    /// Name of an interface.
    Interface(u64, Cow<'a, str>),
    /// Name of a VRF.
    Vrf(u64, Cow<'a, str>),
    /// Name of an application.
    Application(Cow<'a, [u8]>, Cow<'a, str>),
    /// Description of an element by enterprise and number.
    Element((u32, u16), Cow<'a, str>, DataType, Semantics),
}

/// All facts of one session and observation domain. Copies are cheap.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Facts {
    system_init_unix_nano: Option<i64>,
    samplers: SnapshotMap<SamplerKey, f64>,
    /// How many samplers have a rate, by its bits.
    rates: SnapshotMap<u64, usize>,
    /// How many samplers are for some records only.
    samplers_of_records: usize,
    interfaces: SnapshotMap<u64, Arc<str>>,
    vrfs: SnapshotMap<u64, Arc<str>>,
    applications: SnapshotMap<Box<[u8]>, Arc<str>>,
    elements: SnapshotMap<(u32, u16), Arc<DescribedElement>>,
    elements_generation: u64,
}

impl Facts {
    /// Number of facts.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.system_init_unix_nano.is_some())
            + self.samplers.len()
            + self.interfaces.len()
            + self.vrfs.len()
            + self.applications.len()
            + self.elements.len()
    }

    pub(super) fn system_init_unix_nano(&self) -> Option<i64> {
        self.system_init_unix_nano
    }

    pub(super) fn sampler(&self, key: SamplerKey) -> Option<f64> {
        self.samplers.get(&key).copied()
    }

    fn samplers(&self) -> impl Iterator<Item = (SamplerKey, f64)> {
        self.samplers.iter().map(|(&key, &rate)| (key, rate))
    }

    pub(super) fn has_samplers(&self) -> bool {
        self.samplers.len() > 0
    }

    /// The rate of all samplers, if they agree.
    pub(super) fn only_rate(&self) -> Option<f64> {
        let mut rates = self.rates.iter();
        let (&rate, _) = rates.next().filter(|_| self.rates.len() == 1)?;
        Some(f64::from_bits(rate))
    }

    /// Whether some samplers are for some records only.
    pub(super) fn depends_on_record(&self) -> bool {
        self.samplers_of_records > 0
    }

    /// Takes the rate of a sampler, or takes it back.
    fn set_rate(&mut self, key: SamplerKey, rate: Option<f64>) {
        let known = self.sampler(key);
        if let Some(known) = known.map(f64::to_bits) {
            let left = self.rates.get(&known).map_or(0, |count| count - 1);
            let _: bool = if left == 0 { self.rates.remove(&known) } else { self.rates.insert(known, left) };
        }
        match rate {
            Some(rate) => {
                let _: bool = self.samplers.insert(key, rate);
                let count = self.rates.get(&rate.to_bits()).copied().unwrap_or_default();
                let _: bool = self.rates.insert(rate.to_bits(), count + 1);
            }
            None => {
                let _: bool = self.samplers.remove(&key);
            }
        }
        if !matches!(key, SamplerKey::All | SamplerKey::Template(_)) {
            self.samplers_of_records += usize::from(rate.is_some());
            self.samplers_of_records -= usize::from(known.is_some());
        }
    }

    pub(super) fn interface(&self, index: u64) -> Option<&str> {
        self.interfaces.get(&index).map(AsRef::as_ref)
    }

    pub(super) fn vrf(&self, id: u64) -> Option<&str> {
        self.vrfs.get(&id).map(AsRef::as_ref)
    }

    pub(super) fn application(&self, id: &[u8]) -> Option<&str> {
        self.applications.get(id).map(AsRef::as_ref)
    }

    pub(super) fn element(&self, enterprise: u32, id: u16) -> Option<&DescribedElement> {
        self.elements.get(&(enterprise, id)).map(AsRef::as_ref)
    }

    pub(super) fn elements_generation(&self) -> u64 {
        self.elements_generation
    }

    /// Whether the facts already are as `fact` says.
    pub(super) fn says(&self, fact: &Fact<'_>) -> bool {
        let same = |known: Option<&str>, name: &str| known.unwrap_or_default() == name;
        match fact {
            Fact::SystemInit(time) => self.system_init_unix_nano == Some(*time),
            Fact::Sampler(key, rate) => self.sampler(*key) == *rate,
            Fact::Interface(index, name) => same(self.interface(*index), name),
            Fact::Vrf(id, name) => same(self.vrf(*id), name),
            Fact::Application(id, name) => same(self.application(id), name),
            Fact::Element((enterprise, id), name, data_type, semantics) => match self.element(*enterprise, *id) {
                Some(known) => {
                    (known.name.as_str(), known.data_type, known.semantics) == (name, *data_type, *semantics)
                }
                None => name.is_empty(),
            },
        }
    }

    /// Whether `fact` would be one more, instead of taking the place of another or removing one.
    pub(super) fn would_grow(&self, fact: &Fact<'_>) -> bool {
        match fact {
            Fact::SystemInit(_) => self.system_init_unix_nano.is_none(),
            Fact::Sampler(key, rate) => rate.is_some() && self.samplers.get(key).is_none(),
            Fact::Interface(index, name) => !name.is_empty() && self.interface(*index).is_none(),
            Fact::Vrf(id, name) => !name.is_empty() && self.vrf(*id).is_none(),
            Fact::Application(id, name) => !name.is_empty() && self.application(id).is_none(),
            Fact::Element((enterprise, id), name, ..) => !name.is_empty() && self.element(*enterprise, *id).is_none(),
        }
    }

    /// Takes a fact.
    pub(super) fn take(&mut self, fact: &Fact<'_>) {
        match fact {
            Fact::SystemInit(time) => self.system_init_unix_nano = Some(*time),
            Fact::Sampler(key, rate) => self.set_rate(*key, *rate),
            Fact::Interface(index, name) => set_name(&mut self.interfaces, *index, name),
            Fact::Vrf(id, name) => set_name(&mut self.vrfs, *id, name),
            Fact::Application(id, name) => set_name(&mut self.applications, Box::from(id.as_ref()), name),
            Fact::Element(key, name, data_type, semantics) => {
                if name.is_empty() {
                    let _: bool = self.elements.remove(key);
                } else {
                    let (data_type, semantics) = (*data_type, *semantics);
                    let described = DescribedElement { name: cut(name).to_owned(), data_type, semantics };
                    let _: bool = self.elements.insert(*key, Arc::new(described));
                }
                self.elements_generation = ELEMENTS_GENERATION.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Takes all facts of another exporter part; where both say something, the other one's hold.
    pub(crate) fn absorb(&mut self, other: &Self) {
        other.iter().for_each(|fact| self.take(&fact));
    }

    /// Everything that is known, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Fact<'_>> {
        let name = |name: &'_ Arc<str>| Cow::Owned(name.to_string());
        let init = self.system_init_unix_nano.into_iter().map(Fact::SystemInit);
        let samplers = self.samplers().map(|(key, rate)| Fact::Sampler(key, Some(rate)));
        let interfaces = self.interfaces.iter().map(move |(&index, text)| Fact::Interface(index, name(text)));
        let vrfs = self.vrfs.iter().map(move |(&id, text)| Fact::Vrf(id, name(text)));
        let applications =
            self.applications.iter().map(move |(id, text)| Fact::Application(Cow::Borrowed(id.as_ref()), name(text)));
        let elements = self.elements.iter().map(|(&key, element)| {
            Fact::Element(key, Cow::Borrowed(element.name.as_str()), element.data_type, element.semantics)
        });
        init.chain(samplers).chain(interfaces).chain(vrfs).chain(applications).chain(elements)
    }
}

fn set_name<K: Eq + std::hash::Hash + Clone>(names: &mut SnapshotMap<K, Arc<str>>, key: K, name: &str) {
    if name.is_empty() {
        let _: bool = names.remove(&key);
    } else {
        let _: bool = names.insert(key, Arc::from(cut(name)));
    }
}

/// The part of a name that is kept.
pub(super) fn cut(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}
