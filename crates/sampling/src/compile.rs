//! From settings to a sampler, with all checks of them.

use crate::config::{
    AlwaysKeepConfig, Draw, KeyField, KeyHashConfig, PolicyConfig, RateLimitConfig, RatioConfig, SamplingConfig,
};
use crate::gaps::{Draws, Gaps};
use crate::key::Key;
use crate::policy::{AlwaysKeep, ByHash, Chance, Ratio, Rule};
use crate::rate_limit::RateLimit;
use crate::sampler::{Policy, PolicyCounts, Sampler};
use crate::threshold::Threshold;
use crate::weights::{WeightId, Weights};

/// Least and most records a second.
const RATES: (f64, f64) = (0.01, 1e9);

/// What a sampler decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Syslog messages.
    Syslog,
    /// Data records of IPFIX or NetFlow.
    Flows,
}

/// A setting that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The key at fault, from below `sampling`, such as `policies[1].key_hash.ratio`.
    pub key: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl ConfigError {
    fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}

impl SamplingConfig {
    /// Makes a sampler of these settings for an input. `instance` tells samplers apart that share settings, such as those
    /// of several cores, so that they draw independently; what they decide by key or trace is the same in all.
    ///
    /// # Errors
    /// Names the key at fault and what would be right: a number out of range, a policy that asks for what the input does
    /// not have, one that names nothing, or one that no record can reach.
    pub fn compile(&self, input: Input, instance: u64) -> Result<Sampler, ConfigError> {
        if self.policies.is_empty() {
            return Err(ConfigError::new("policies", "is empty, expected at least one policy"));
        }
        let mut weights = Weights::new();
        let mut policies = Vec::with_capacity(self.policies.len());
        for (index, policy) in self.policies.iter().enumerate() {
            if let Some((before, unconditional)) = self.policies[..index].iter().enumerate().find(|(_, p)| p.is_final())
            {
                let name = unconditional.name();
                let problem = format!(
                    "is never reached, as policies[{before}] ({name}) decides on every record, expected it last"
                );
                return Err(ConfigError::new(format!("policies[{index}].{}", policy.name()), problem));
            }
            let key = format!("policies[{index}].{}", policy.name());
            let draws = Draws::new(self.seed, &[instance, index as u64]);
            let rule = policy.rule(input, &key, self.seed, draws, &mut weights)?;
            policies.push(Policy { name: policy.name(), rule, counts: PolicyCounts::default() });
        }
        Ok(Sampler::new(policies, weights))
    }
}

impl PolicyConfig {
    /// Applies to every record.
    fn is_final(&self) -> bool {
        matches!(self, Self::Ratio(_) | Self::RateLimit(_))
    }

    fn rule(
        &self,
        input: Input,
        key: &str,
        seed: u64,
        draws: Draws,
        weights: &mut Weights,
    ) -> Result<Rule, ConfigError> {
        Ok(match self {
            Self::AlwaysKeep(config) => Rule::AlwaysKeep(always_keep(config, input, key)?),
            Self::TraceFlag(config) => {
                has_traces(input, key)?;
                Rule::TraceFlag(config.unsampled)
            }
            Self::Ratio(config) => Rule::Ratio(ratio(config, key, draws, weights)?),
            Self::KeyHash(config) => {
                let chance = chance(config.ratio, &format!("{key}.ratio"), weights)?;
                let by = ByHash::new(seed, chance, draws);
                match key_fields(config, input, key)? {
                    fields if fields.is_flow_alone() => Rule::FlowHash(by),
                    fields => Rule::KeyHash(fields, by),
                }
            }
            Self::TraceRatio(config) => {
                has_traces(input, key)?;
                Rule::TraceRatio { chance: chance(config.ratio, key, weights)?, incoming: config.incoming }
            }
            Self::RateLimit(config) => Rule::RateLimit(rate_limit(config, key, draws)?),
        })
    }
}

fn has_traces(input: Input, key: &str) -> Result<(), ConfigError> {
    match input {
        Input::Syslog => Ok(()),
        Input::Flows => Err(ConfigError::new(
            key,
            "records of flows belong to no trace, expected always_keep, key_hash, ratio or rate_limit",
        )),
    }
}

fn always_keep(config: &AlwaysKeepConfig, input: Input, key: &str) -> Result<AlwaysKeep, ConfigError> {
    let AlwaysKeepConfig { severity, hosts, apps, sources } = config;
    if severity.is_none() && hosts.is_empty() && apps.is_empty() && sources.is_empty() {
        return Err(ConfigError::new(key, "names nothing, expected severity, hosts, apps or sources"));
    }
    if input == Input::Flows {
        let asked = [("severity", severity.is_some()), ("hosts", !hosts.is_empty()), ("apps", !apps.is_empty())];
        if let Some((name, _)) = asked.iter().find(|(_, asked)| *asked) {
            return Err(ConfigError::new(format!("{key}.{name}"), "records of flows have none, expected sources"));
        }
    }
    let names = |names: &[String], list: &str| {
        if let Some(empty) = names.iter().position(String::is_empty) {
            return Err(ConfigError::new(format!("{key}.{list}[{empty}]"), "is empty, expected a name"));
        }
        Ok(names.iter().map(|name| name.as_bytes().into()).collect())
    };
    Ok(AlwaysKeep {
        severity: severity.map(|severity| severity as u8),
        hosts: names(hosts, "hosts")?,
        apps: names(apps, "apps")?,
        sources: sources.iter().map(|source| source.0).collect(),
    })
}

/// Checks a share; nothing for 0.
fn threshold(ratio: f64, key: &str) -> Result<Option<Threshold>, ConfigError> {
    if ratio == 0.0 {
        return Ok(None);
    }
    let threshold = Threshold::from_probability(ratio);
    let problem = || format!("{ratio} is out of range, expected 0 to 1, and if not 0 at least 2^-56");
    threshold.map(Some).ok_or_else(|| ConfigError::new(key, problem()))
}

fn chance(ratio: f64, key: &str, weights: &mut Weights) -> Result<Chance, ConfigError> {
    Ok(threshold(ratio, key)?.map(|threshold| (threshold, weights.intern(threshold))))
}

fn ratio(config: &RatioConfig, key: &str, draws: Draws, weights: &mut Weights) -> Result<Ratio, ConfigError> {
    Ok(match chance(config.ratio, key, weights)? {
        None => Ratio::None,
        Some((_, WeightId::ONE)) => Ratio::All,
        Some((threshold, weight)) => {
            let gaps = match config.draw {
                Draw::Random => Gaps::random(draws, threshold),
                Draw::Systematic => Gaps::systematic(draws, threshold),
            };
            Ratio::Some { gaps, weight }
        }
    })
}

fn key_fields(config: &KeyHashConfig, input: Input, key: &str) -> Result<Key, ConfigError> {
    let (known, what): (&[KeyField], _) = match input {
        Input::Syslog => (&[KeyField::Host, KeyField::App, KeyField::Source], "messages"),
        Input::Flows => (&[KeyField::Source, KeyField::Exporter, KeyField::Flow], "records of flows"),
    };
    let names = known.iter().map(KeyField::to_string).collect::<Vec<_>>().join(", ");
    let key = format!("{key}.key");
    if config.key.is_empty() {
        return Err(ConfigError::new(key, format!("is empty, expected one or more of {names}")));
    }
    for (index, field) in config.key.iter().enumerate() {
        if !known.contains(field) {
            return Err(ConfigError::new(key, format!("{what} have no {field}, expected one or more of {names}")));
        }
        if config.key[..index].contains(field) {
            return Err(ConfigError::new(key, format!("{field} is there twice, expected each field once")));
        }
    }
    Ok(Key::new(&config.key))
}

fn rate_limit(config: &RateLimitConfig, key: &str, draws: Draws) -> Result<RateLimit, ConfigError> {
    let (least, most) = RATES;
    let RateLimitConfig { per_second, hard_cap } = *config;
    if !(least..=most).contains(&per_second) {
        let problem = format!("{per_second} records a second is out of range, expected {least} to {most}");
        return Err(ConfigError::new(format!("{key}.per_second"), problem));
    }
    let hard_cap = hard_cap.unwrap_or(2.0 * per_second);
    if !(per_second..=2.0 * most).contains(&hard_cap) {
        let problem =
            format!("{hard_cap} records a second is out of range, expected per_second ({per_second}) or more");
        return Err(ConfigError::new(format!("{key}.hard_cap"), problem));
    }
    Ok(RateLimit::new(draws, per_second, hard_cap))
}
