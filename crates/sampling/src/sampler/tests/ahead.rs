//! Records that are dropped without a look at them.

use super::*;

/// What is dropped ahead is what would be dropped one by one, whatever part of it comes first, and is counted the same.
#[test]
fn as_one_by_one() {
    let chains = [
        (json!([{"ratio": 0.03}]), true),
        (json!([{"ratio": {"ratio": 0.2, "draw": "systematic"}}]), true),
        (json!([{"ratio": 0.0}]), true),
        (json!([{"ratio": 1.0}]), false),
        (json!([{"rate_limit": {"per_second": 1}}]), false),
        (json!([{"always_keep": {"severity": "err"}}, {"ratio": 0.0}]), false),
        (json!([{"trace_flag": {"unsampled": "drop"}}]), false),
    ];
    for (policies, is_known) in chains {
        let mut one_by_one = sampler(policies.clone());
        let mut ahead = one_by_one.clone();
        let (mut expected, mut found, mut was_known) = (Vec::new(), Vec::new(), false);
        for record in 0..20_000_u64 {
            if matches!(one_by_one.decide(&message("<14>1 - h a - - - t"), record), Decision::Keep { .. }) {
                expected.push(record);
            }
        }
        let mut record = 0;
        while record < 20_000 {
            // A part of it, or more than there is.
            let wanted = (1 + scattered(record) % 50).min(20_000 - record);
            let known = ahead.drops_ahead();
            was_known |= known > 0;
            let dropped = ahead.drop_ahead(wanted);
            assert_eq!(dropped, wanted.min(known));
            record += dropped;
            if record < 20_000 && ahead.drops_ahead() == 0 {
                if matches!(ahead.decide(&message("<14>1 - h a - - - t"), record), Decision::Keep { .. }) {
                    found.push(record);
                }
                record += 1;
            }
        }
        assert_eq!((found, ahead.counts(), was_known), (expected, one_by_one.counts(), is_known), "{policies}");
    }
}
