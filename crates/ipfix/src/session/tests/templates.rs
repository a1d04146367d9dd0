//! How templates are learned, replaced and withdrawn.

use std::sync::Arc;

use super::{admit, ipfix, ipfix_from, kinds, records, session, set, template, template_record, v9, words};
use crate::problem::ProblemKind;
use crate::session::Transport;
use crate::template::Kind;

/// The same definition again keeps the template; another one takes its place.
#[test]
fn refresh_and_replace() {
    for (transport, problems) in [(Transport::Udp, vec![]), (Transport::Stream, vec![ProblemKind::TemplateRedefined])] {
        let mut session = session(transport);
        let with_data = |fields: &[(u16, u16)]| ipfix(&[template(256, fields), set(256, &[1, 2, 3, 4])]);
        let first = admit(&mut session, &with_data(&[(4, 1)]));
        let second = admit(&mut session, &with_data(&[(4, 1)]));
        assert!(Arc::ptr_eq(&first.sets[0].template, &second.sets[0].template));
        assert_eq!(second.counters.templates_refreshed, 1);
        assert!(second.problems.is_empty());
        let third = admit(&mut session, &with_data(&[(7, 2)]));
        assert_eq!((third.counters.templates_replaced, records(&third)), (1, vec![2]));
        assert_eq!(kinds(&third), problems);
        assert_eq!(first.sets[0].template.fields()[0].id, 4, "what was admitted stays as it was");
    }
}

/// A malformed new definition makes the id unknown.
#[test]
fn malformed_redefinition() {
    let overrun = set(2, &words(&[256, 4, 4, 1]));
    let scopes = set(3, &words(&[256, 1, 2, 4, 1]));
    for bad in [overrun, scopes] {
        let mut session = session(Transport::Udp);
        let _ = admit(&mut session, &ipfix(&[template(256, &[(4, 1)])]));
        let admitted = admit(&mut session, &ipfix(&[bad]));
        assert_eq!(admitted.counters.templates_invalidated, 1);
        let after = admit(&mut session, &ipfix(&[set(256, &[1])]));
        assert_eq!(kinds(&after), [ProblemKind::UnknownTemplate]);
    }
}

/// Several templates in a set, with padding after them.
#[test]
fn several_in_a_set() {
    for padding in 0..=7 {
        let content = [template_record(256, &[(4, 1)]), template_record(257, &[(4, 1)]), vec![0; padding]];
        let message = ipfix(&[set(2, &content.concat()), set(256, &[1]), set(257, &[1, 2])]);
        let admitted = admit(&mut session(Transport::Udp), &message);
        assert_eq!(records(&admitted), [1, 2], "{padding} bytes of padding");
        assert!(admitted.problems.is_empty());
    }
}

/// A template that makes no sense costs only itself.
#[test]
fn senseless_templates() {
    let content =
        [template_record(255, &[(4, 1)]), template_record(256, &[(4, 1)]), template_record(1, &[(5, 1), (6, 1)])];
    let admitted = admit(&mut session(Transport::Udp), &ipfix(&[set(2, &content.concat()), set(256, &[1])]));
    assert_eq!(kinds(&admitted), [ProblemKind::TemplateInvalid; 2]);
    assert_eq!(records(&admitted), [1]);
}

/// Scope fields are marked, with enterprise numbers too; no scope is taken, a scope of all fields is fine.
#[test]
fn options_templates() {
    let record = |scopes: u16| words(&[256, 2, scopes, 0x8000 | 5, 4, 0, 9, 4, 1]);
    for (scopes, problems) in [(0, vec![ProblemKind::EmptyScope]), (1, vec![]), (2, vec![])] {
        let message = ipfix(&[set(3, &record(scopes)), set(256, &[0, 0, 0, 1, 6])]);
        let admitted = admit(&mut session(Transport::Udp), &message);
        assert_eq!(kinds(&admitted), problems);
        let template = &admitted.sets[0].template;
        assert_eq!((template.kind(), template.scope_field_count()), (Kind::Options, usize::from(scopes)));
        assert_eq!((template.fields()[0].id, template.fields()[0].enterprise), (5, 9));
        assert_eq!(admitted.counters.options_records, 1);
    }
    let admitted = admit(&mut session(Transport::Udp), &ipfix(&[set(3, &record(3))]));
    assert_eq!(kinds(&admitted), [ProblemKind::TemplateInvalid]);
}

/// Domains and protocol versions have templates of their own.
#[test]
fn keys() {
    let mut session = session(Transport::Udp);
    let _ = admit(&mut session, &ipfix_from(1, 0, &[template(256, &[(4, 1)])]));
    let _ = admit(&mut session, &ipfix_from(2, 0, &[template(256, &[(7, 2)])]));
    let data = [set(256, &[1, 2, 3, 4])];
    assert_eq!(records(&admit(&mut session, &ipfix_from(1, 0, &data))), [4]);
    assert_eq!(records(&admit(&mut session, &ipfix_from(2, 0, &data))), [2]);
    assert_eq!(admit(&mut session, &ipfix_from(7, 0, &data)).unknown_sets.len(), 1);
    let _ = admit(&mut session, &ipfix(&[template(256, &[(4, 1)])]));
    assert_eq!(admit(&mut session, &v9(0, 0, &data)).unknown_sets.len(), 1);
}

/// Templates and options templates share their ids.
#[test]
fn one_space_of_ids() {
    let mut session = session(Transport::Udp);
    let _ = admit(&mut session, &ipfix(&[template(256, &[(4, 1)])]));
    let options = set(3, &words(&[256, 1, 1, 4, 1]));
    let admitted = admit(&mut session, &ipfix(&[options, set(256, &[1])]));
    assert_eq!((admitted.counters.templates_replaced, admitted.counters.options_records), (1, 1));
}

/// Withdrawals count over a stream, for one template or for all of a kind.
#[test]
fn withdrawals() {
    let learn = ipfix(&[
        template(256, &[(4, 1)]),
        template(257, &[(4, 1)]),
        set(3, &words(&[258, 1, 1, 4, 1])),
        set(3, &words(&[259, 1, 1, 4, 1])),
    ]);
    let known = |withdrawal: Vec<u8>| {
        let mut session = session(Transport::Stream);
        let _ = admit(&mut session, &ipfix_from(1, 0, &[template(256, &[(4, 1)])]));
        let _ = admit(&mut session, &learn);
        let admitted = admit(&mut session, &ipfix(&[withdrawal]));
        let mut ids: Vec<u16> =
            session.templates().filter(|(_, domain, _)| *domain == 7).map(|(_, _, t)| t.id()).collect();
        ids.sort_unstable();
        assert_eq!(admitted.counters.templates_withdrawn as usize, 4 - ids.len());
        assert_eq!(session.templates().count(), ids.len() + 1, "the other domain");
        (ids, kinds(&admitted))
    };
    assert_eq!(known(set(2, &words(&[256, 0]))), (vec![257, 258, 259], vec![]));
    assert_eq!(known(set(2, &words(&[256, 0, 257, 0]))), (vec![258, 259], vec![]));
    assert_eq!(known(set(3, &words(&[258, 0]))), (vec![256, 257, 259], vec![]));
    assert_eq!(known(set(2, &words(&[2, 0, 2, 0]))), (vec![258, 259], vec![]));
    assert_eq!(known(set(3, &words(&[3, 0]))), (vec![256, 257], vec![]));
    let all = vec![256, 257, 258, 259];
    assert_eq!(known(set(2, &words(&[300, 0]))), (all.clone(), vec![ProblemKind::WithdrawalUnknown]));
    assert_eq!(known(set(2, &words(&[3, 0]))), (all, vec![ProblemKind::TemplateInvalid]));
}

/// Over a stream a withdrawn id may be defined anew, in the same set.
#[test]
fn withdrawn_and_redefined() {
    let mut session = session(Transport::Stream);
    let _ = admit(&mut session, &ipfix(&[template(256, &[(4, 1)])]));
    let content = [words(&[256, 0]), template_record(256, &[(7, 2)])].concat();
    let admitted = admit(&mut session, &ipfix(&[set(2, &content), set(256, &[1, 2])]));
    assert!(admitted.problems.is_empty());
    assert_eq!((admitted.counters.templates_new, records(&admitted)), (1, vec![1]));
    let twice = [words(&[2, 0]), template_record(256, &[(4, 1)]), words(&[2, 0])].concat();
    let _ = admit(&mut session, &ipfix(&[set(2, &twice)]));
    assert_eq!(session.templates().count(), 0);
}

/// Over UDP withdrawals do nothing but count.
#[test]
fn withdrawals_over_udp() {
    let mut session = session(Transport::Udp);
    let _ = admit(&mut session, &ipfix(&[template(256, &[(4, 1)])]));
    let admitted = admit(&mut session, &ipfix(&[set(2, &words(&[256, 0])), set(2, &words(&[2, 0])), set(256, &[1])]));
    assert_eq!(kinds(&admitted), [ProblemKind::WithdrawalIgnored; 2]);
    assert_eq!(records(&admitted), [1]);
}

/// Repeated elements are kept in their order.
#[test]
fn repeated_elements() {
    let fields = [(58, 2), (4, 1), (58, 2), (210, 1), (210, 1)];
    let admitted = admit(&mut session(Transport::Udp), &ipfix(&[template(256, &fields), set(256, &[1; 7])]));
    let known: Vec<(u16, u16)> =
        admitted.sets[0].template.fields().iter().map(|field| (field.id, field.length)).collect();
    assert_eq!(known, fields);
}
