//! Bounds of what a session keeps.

use super::{admit, ipfix, ipfix_from, kinds, records, set, template};
use crate::problem::ProblemKind;
use crate::session::{Limits, Session, Transport};

fn limited(change: impl FnOnce(&mut Limits)) -> Session {
    let mut limits = Limits::default();
    change(&mut limits);
    Session::new(Transport::Udp, limits)
}

/// Beyond the number of templates those not used for longest go; use by data counts.
#[test]
fn templates() {
    let mut session = limited(|limits| limits.max_templates = 2);
    let _ = admit(&mut session, &ipfix(&[template(256, &[(4, 1)]), template(257, &[(4, 1)]), set(256, &[1])]));
    let admitted = admit(&mut session, &ipfix(&[template(258, &[(4, 1)])]));
    assert_eq!(admitted.counters.templates_evicted, 1);
    let data = admit(&mut session, &ipfix(&[set(256, &[1]), set(257, &[1]), set(258, &[1])]));
    assert_eq!((records(&data).len(), data.unknown_sets[0].template_id), (2, 257));
}

/// The fields of all templates together are bounded too, and freed with their template.
#[test]
fn total_fields() {
    let mut session = limited(|limits| limits.max_total_fields = 4);
    for id in 256..300 {
        let _ = admit(&mut session, &ipfix(&[template(id, &[(4, 1), (5, 1)])]));
        let _ = admit(&mut session, &ipfix(&[template(id, &[(4, 1), (6, 1)])]));
    }
    assert_eq!(session.templates().count(), 2);
    let large = admit(&mut session, &ipfix(&[template(400, &[(4, 1); 5]), set(400, &[1; 5])]));
    assert_eq!((large.counters.templates_evicted, records(&large)), (2, vec![1]));
}

/// A template over its limits is skipped, forgets what the id meant, and costs no other template.
#[test]
fn fields() {
    for change in
        [|limits: &mut Limits| limits.max_template_fields = 2, |limits: &mut Limits| limits.max_empty_fields = 1]
    {
        let mut session = limited(change);
        let _ = admit(&mut session, &ipfix(&[template(256, &[(4, 1)])]));
        let large = template(256, &[(4, 1), (5, 0), (6, 0)]);
        let message = ipfix(&[large, template(257, &[(4, 1)]), set(256, &[1]), set(257, &[1])]);
        let admitted = admit(&mut session, &message);
        assert_eq!(kinds(&admitted), [ProblemKind::TemplateLimit, ProblemKind::UnknownTemplate]);
        assert_eq!(records(&admitted), [1]);
    }
}

/// The default limits take the largest template that telemetry of switches sends in one message.
#[test]
fn large_templates() {
    let fields: Vec<(u16, u16)> = vec![(1, 8); 8_188];
    let admitted = admit(&mut limited(|_| ()), &ipfix(&[template(256, &fields)]));
    assert_eq!((admitted.counters.templates_new, admitted.problems.len()), (1, 0));
}

/// Domains are forgotten one at a time.
#[test]
fn domains() {
    let mut session = limited(|limits| limits.max_domains = 2);
    let evicted: u64 =
        (0..5).map(|domain| admit(&mut session, &ipfix_from(domain, 9, &[])).counters.domains_evicted).sum();
    assert_eq!(evicted, 3);
}

/// Problems beyond the limit are only counted.
#[test]
fn problems() {
    let mut session = limited(|limits| limits.max_problems = 3);
    let sets: Vec<Vec<u8>> = (0..100).map(|_| set(9, &[])).collect();
    let admitted = admit(&mut session, &ipfix(&sets));
    assert_eq!(admitted.problems.len(), 3);
    assert_eq!(admitted.counters.problem(ProblemKind::ReservedSet), 100);
}

/// Records without bytes are none, however much data there is for them.
#[test]
fn empty_records() {
    let admitted = admit(&mut limited(|_| ()), &ipfix(&[template(256, &[(4, 0)]), set(256, &[1; 100])]));
    assert_eq!(kinds(&admitted), [ProblemKind::EmptyRecords; 2]);
    assert!(admitted.sets.is_empty());
    assert_eq!(admitted.counters.skipped_bytes, 100);
}
