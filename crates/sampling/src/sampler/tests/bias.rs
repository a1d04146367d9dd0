//! Sums of weights are right on average: within four standard deviations of what was seen, for fixed seeds.

use super::*;

/// Sum of weights, and the variance of that sum as the sample itself tells it: w (w - 1) for each kept record that was
/// drawn independently.
#[derive(Default)]
struct Sum {
    weights: f64,
    variance: f64,
    seen: f64,
}

impl Sum {
    fn add(&mut self, weight: f64) {
        self.seen += 1.0;
        self.weights += weight;
        self.variance += weight * (weight - 1.0).max(0.0);
    }

    fn check(&self, what: &str) {
        let off = self.weights - self.seen;
        let deviation = self.variance.sqrt();
        assert!(off.abs() <= 4.0 * deviation, "{what}: {} for {}, deviation {deviation}", self.weights, self.seen);
        assert!(deviation < 0.1 * self.seen, "{what}: {deviation} tells nothing");
    }
}

/// `ratio` of both kinds.
#[test]
fn ratio() {
    for seed in 0..5 {
        for ratio in [0.9, 0.5, 0.1, 0.01] {
            for draw in ["random", "systematic"] {
                let policies = json!([{"ratio": {"ratio": ratio, "draw": draw}}]);
                let mut sampler = sampler_of(json!({"seed": seed, "policies": policies}), Input::Syslog, seed);
                let mut sum = Sum::default();
                for _ in 0..50_000 {
                    let decision = sampler.decide(&message(""), 0);
                    sum.add(weight(&sampler, decision));
                }
                sum.check(&format!("{draw} {ratio}, seed {seed}"));
                if draw == "systematic" {
                    assert!((sum.weights - sum.seen).abs() <= 1.0 / ratio + 1e-6, "{ratio}, seed {seed}");
                }
            }
        }
    }
}

/// `key_hash`: keys are drawn, with all their records.
#[test]
fn key_hash() {
    for seed in 0..5 {
        let policies = json!([{"key_hash": {"ratio": 0.2, "key": "host"}}]);
        let mut sampler = sampler_of(json!({"seed": seed, "policies": policies}), Input::Syslog, 0);
        let mut sums: HashMap<u64, f64> = HashMap::new();
        let mut seen: HashMap<u64, f64> = HashMap::new();
        for record in 0..40_000u64 {
            let key = scattered(record) % 3000;
            let decision = sampler.decide(&message(&format!("<14>1 - host{key} a - - - text {record}")), 0);
            *sums.entry(key).or_default() += weight(&sampler, decision);
            *seen.entry(key).or_default() += 1.0;
        }
        let deviation = seen.values().map(|count| count * count * 0.8 / 0.2).sum::<f64>().sqrt();
        let off = sums.values().sum::<f64>() - 40_000.0;
        assert!(off.abs() <= 4.0 * deviation, "seed {seed}: {off}, deviation {deviation}");
        assert!(sums.iter().all(|(key, sum)| *sum == 0.0 || (*sum - 5.0 * seen[key]).abs() < 1e-6));
    }
}

/// `trace_ratio`: also where some traces came with a threshold that their messages have passed already.
#[test]
fn trace_ratio() {
    for (ratio, before) in [(0.1, 0.0), (0.5, 0.5), (0.25, 0.5), (0.5, 0.75)] {
        let mut sampler = sampler(json!([{"trace_ratio": ratio}, {"ratio": 0}]));
        let sent = crate::Threshold::from_probability(1.0 - before).expect("a probability");
        let mut sum = Sum::default();
        for trace in 0..40_000u64 {
            let randomness = crate::Randomness::from_low_bits(scattered(!trace));
            // Half of the senders thin their messages before they send them.
            let thinned = trace % 2 == 0 && before > 0.0;
            if thinned && !sent.admits(randomness) {
                sum.add(0.0);
                continue;
            }
            let state = if thinned { format!(" tracestate=ot=th:{sent}") } else { String::new() };
            let decision = sampler.decide(&message(&format!("{}{state}", traceparent(trace, true))), 0);
            sum.add(weight(&sampler, decision));
        }
        sum.check(&format!("trace ratio {ratio}, {before} gone before"));
    }
}

/// `trace_flag` that drops: what is kept stands for what was not sampled.
#[test]
fn trace_flag() {
    let mut sampler = sampler(json!([{"trace_flag": {"unsampled": "drop"}}]));
    let sent = crate::Threshold::from_probability(0.3).expect("a probability");
    let mut sum = Sum::default();
    for trace in 0..40_000u64 {
        let sampled = sent.admits(crate::Randomness::from_low_bits(scattered(!trace)));
        let state = if sampled { format!(" tracestate=\"ot=th:{sent}\"") } else { String::new() };
        let decision = sampler.decide(&message(&format!("{}{state}", traceparent(trace, sampled))), 0);
        assert_eq!(matches!(decision, Decision::Keep { .. }), sampled);
        sum.add(weight(&sampler, decision));
    }
    sum.check("trace flag");
}

/// `rate_limit`, with traffic that rises, falls, stops and bursts.
#[test]
fn rate_limit() {
    for seed in 0..5 {
        let policies = json!([{"rate_limit": {"per_second": 1000, "hard_cap": 1_000_000}}]);
        let mut sampler = sampler_of(json!({"seed": seed, "policies": policies}), Input::Syslog, 0);
        let mut sum = Sum::default();
        let mut now = 0u64;
        for (per_second, seconds) in [(500, 2), (20_000, 3), (2000, 3), (0, 5), (80_000, 2), (100, 2), (10_000, 3)] {
            let end = now + seconds * 1_000_000_000;
            while per_second > 0 && now < end {
                // Bursts of ten at the same moment.
                for _ in 0..10 {
                    let decision = sampler.decide(&message(""), now);
                    sum.add(weight(&sampler, decision));
                }
                now += 10_000_000_000 / per_second;
            }
            now = end;
        }
        sum.check(&format!("rate limit, seed {seed}"));
        assert_eq!(sampler.counts().dropped_by(DropReason::HardCap), 0);
    }
}

/// Instances that share settings draw independently.
#[test]
fn instances_are_independent() {
    let kept = |instance| {
        let policies = json!([{"ratio": 0.5}]);
        let mut sampler = sampler_of(json!({"seed": 1, "policies": policies}), Input::Syslog, instance);
        (0..10_000).map(|_| sampler.decide(&message(""), 0)).collect::<Vec<_>>()
    };
    let (one, other) = (kept(0), kept(1));
    assert_eq!(one, kept(0));
    let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
    assert!((4800..5200).contains(&same), "{same}");
}

/// Where one key holds much of what `key_hash` decides on, it is told, with its fate; where none does, it is not.
#[test]
fn heavy_keys_are_told() {
    let policies = json!([{"key_hash": {"ratio": 0.5, "key": "host"}}]);
    for (share, is_heavy) in [(3, true), (40, false)] {
        let mut sampler = sampler_of(json!({"seed": 1, "policies": policies}), Input::Syslog, 0);
        let mut fate = None;
        for record in 0..200_000u64 {
            let draw = scattered(record);
            if draw.is_multiple_of(share) {
                fate = Some(sampler.decide(&message("<14>1 - heavy a - - - text"), 0));
            } else {
                let line = format!("<14>1 - h{} a - - - text", draw % 5_000);
                let _fate = sampler.decide(&message(&line), 0);
            }
        }
        let found = sampler.counts().heavy_keys;
        assert_eq!(found.stretches > 3, is_heavy, "{found:?}");
        if is_heavy {
            assert!((28..=38).contains(&found.percent), "{found:?}");
            assert_eq!(found.kept, matches!(fate, Some(Decision::Keep { .. })));
        }
    }
}
