//! What is measured.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use catchment_loadgen::metrics::{Corpus, MetricsOptions, MetricsProtocol, MetricsShape};

use super::super::rounds::Side;

/// How quantiles are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// KLL sketches of size [`K`].
    Kll,
    /// All values.
    Exact,
    /// Not at all: points go through.
    Raw,
}

/// Size of the sketches.
pub(super) const K: u16 = 400;

impl Side for Method {
    fn name(self) -> &'static str {
        match self {
            Self::Kll => "kll",
            Self::Exact => "exact",
            Self::Raw => "raw",
        }
    }
}

/// Which processes are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Branch,
    Topology,
}

/// Observations of a source in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Window {
    Small,
    Middle,
    Large,
}

impl Window {
    pub(super) fn observations(self) -> u64 {
        match self {
            Self::Small => 16_384,
            Self::Middle => 65_536,
            Self::Large => 262_144,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Small => "16k",
            Self::Middle => "65k",
            Self::Large => "262k",
        }
    }
}

/// A load, and who carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) place: Place,
    pub(super) protocol: MetricsProtocol,
    pub(super) shape: MetricsShape,
    pub(super) window: Window,
    /// 1,000 series by three keys instead of one without any.
    pub(super) grouped: bool,
}

/// All cases in the order in which they are measured.
pub(super) fn all() -> Vec<Case> {
    use MetricsProtocol::{Otap, OtlpGrpc, OtlpHttp};
    use MetricsShape::{MetricPerPoint, SharedMetric};
    use Window::{Large, Middle, Small};
    let branch = |(protocol, shape, window, grouped)| Case { place: Place::Branch, protocol, shape, window, grouped };
    let topology = |(protocol, shape, window)| Case { place: Place::Topology, protocol, shape, window, grouped: false };
    let branches = [
        (OtlpHttp, MetricPerPoint, Small, false),
        (OtlpHttp, MetricPerPoint, Middle, false),
        (OtlpHttp, MetricPerPoint, Large, false),
        (OtlpHttp, SharedMetric, Small, false),
        (OtlpHttp, SharedMetric, Middle, false),
        (OtlpHttp, SharedMetric, Large, false),
        (OtlpHttp, SharedMetric, Middle, true),
        (OtlpGrpc, MetricPerPoint, Middle, false),
        (OtlpGrpc, SharedMetric, Middle, false),
        (OtlpGrpc, SharedMetric, Middle, true),
        (Otap, MetricPerPoint, Middle, false),
        (Otap, SharedMetric, Small, false),
        (Otap, SharedMetric, Middle, false),
        (Otap, SharedMetric, Large, false),
        (Otap, SharedMetric, Middle, true),
    ];
    let topologies = [
        (OtlpHttp, MetricPerPoint, Small),
        (OtlpHttp, MetricPerPoint, Middle),
        (OtlpHttp, MetricPerPoint, Large),
        (OtlpGrpc, SharedMetric, Middle),
        (Otap, SharedMetric, Middle),
    ];
    branches.map(branch).into_iter().chain(topologies.map(topology)).collect()
}

impl Case {
    pub(super) fn name(&self) -> String {
        let place = match self.place {
            Place::Branch => "branch",
            Place::Topology => "topology",
        };
        let protocol = match self.protocol {
            MetricsProtocol::OtlpHttp => "otlp_http",
            MetricsProtocol::OtlpGrpc => "otlp_grpc",
            MetricsProtocol::Otap => "otap",
        };
        let shape = match self.shape {
            MetricsShape::MetricPerPoint => "metric_per_point",
            MetricsShape::SharedMetric => "shared_metric",
        };
        let keys = if self.grouped { "/3-keys" } else { "" };
        format!("{place}/{protocol}/{shape}/{}{keys}", self.window.name())
    }

    /// Name of its rows.
    pub(super) fn name_of(&self, method: Method) -> String {
        format!("{}/{}", self.name(), method.name())
    }

    /// Points that pass through have no windows and no series: once for each protocol and shape is enough.
    pub(super) fn methods(&self) -> Vec<Method> {
        if self.window == Window::Middle && !self.grouped {
            vec![Method::Kll, Method::Exact, Method::Raw]
        } else {
            vec![Method::Kll, Method::Exact]
        }
    }

    /// Sources, each with a process of its own.
    pub(super) fn sources(&self) -> u64 {
        match self.place {
            Place::Branch => 1,
            Place::Topology => 2,
        }
    }

    /// Points of a source, whole windows: some tenths of a second of work.
    pub(super) fn points(&self, quick: bool) -> u64 {
        match (quick, self.protocol, self.shape) {
            (true, ..) => self.window.observations() * 2,
            // The fastest.
            (false, MetricsProtocol::Otap, MetricsShape::SharedMetric) => 2 * 1_048_576,
            (false, ..) => 1_048_576,
        }
    }

    /// Points of a source that pass through: the sink keeps each.
    pub(super) fn raw_points(&self, quick: bool) -> u64 {
        self.points(quick).min(262_144)
    }

    /// The observations of a source.
    pub(super) fn corpus(&self, source: u64, quick: bool) -> Corpus {
        let window = NonZeroU64::new(self.window.observations()).unwrap_or(NonZeroU64::MIN);
        let series = NonZeroU32::new(if self.grouped { 1_000 } else { 1 }).unwrap_or(NonZeroU32::MIN);
        Corpus { source, count: self.points(quick), window, series }
    }

    /// How they are sent. Four connections of OTLP keep a process busy that answers each request.
    pub(super) fn options(&self) -> MetricsOptions {
        let of = |number: usize| NonZeroUsize::MIN.saturating_add(number - 1);
        let (batch, connections) = match (self.protocol, self.shape) {
            (MetricsProtocol::Otap, _) => (8_192, 1),
            (_, MetricsShape::MetricPerPoint) => (1_024, 4),
            (_, MetricsShape::SharedMetric) => (2_048, 4),
        };
        MetricsOptions {
            batch: of(batch),
            connections: of(connections),
            ..MetricsOptions::new(self.protocol, self.shape)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every case has its own name, runs are whole windows, and what is on its way at a time is less than the lateness of
    /// one window.
    #[test]
    fn cases() {
        let names: BTreeSet<String> = all().iter().map(Case::name).collect();
        assert_eq!(names.len(), all().len());
        assert!(names.contains("branch/otlp_http/metric_per_point/262k"), "{names:?}");
        assert!(names.contains("branch/otap/shared_metric/65k/3-keys"), "{names:?}");
        for case in all() {
            for quick in [true, false] {
                assert_eq!(case.points(quick) % case.window.observations(), 0);
            }
            let options = case.options();
            if case.protocol != MetricsProtocol::Otap {
                // The sender lets no more than that be between the oldest without an answer and the newest.
                let on_its_way = options.batch.get() * options.connections.get() * 2;
                assert!(on_its_way as u64 <= case.window.observations());
            }
            assert_eq!(case.corpus(0, false).windows() * case.window.observations(), case.points(false));
        }
    }
}
