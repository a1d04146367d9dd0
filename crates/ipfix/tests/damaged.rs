//! Damaged datagrams: nothing panics, and what is counted adds up.

mod common;

use std::fs;
use std::path::Path;

use catchment_ipfix::{Admitted, Limits, Session, Transport};
use common::{Datagram, Sessions, check_consistent};

/// Admits a damaged datagram to a session that knows the templates, and to one that does not.
fn admit_damaged(known: &mut Session, bytes: &[u8], admitted: &mut Admitted) {
    for session in [known, &mut Session::new(Transport::Stream, Limits::default())] {
        admitted.clear();
        session.admit(bytes, admitted);
        check_consistent(bytes, admitted);
    }
}

/// Cuts a capture and changes its bytes, at about `places` places of each datagram.
fn damage(datagrams: &[Datagram], places: usize) {
    let mut admitted = Admitted::default();
    for (index, datagram) in datagrams.iter().enumerate() {
        let bytes = &datagram.payload;
        for place in (0..bytes.len()).step_by(bytes.len() / places.max(1) + 1) {
            let mut sessions = Sessions::default();
            for earlier in datagrams[..index].iter().rev().take(2) {
                sessions.of(earlier).admit(&earlier.payload, &mut admitted);
            }
            let session = sessions.of(datagram);
            admit_damaged(session, &bytes[..place], &mut admitted);
            let mut changed = bytes.clone();
            changed[place] ^= 0xff;
            admit_damaged(session, &changed, &mut admitted);
            changed[place] = 0;
            admit_damaged(session, &changed, &mut admitted);
        }
    }
}

/// The framing is damaged at every byte of every telemetry vector.
#[test]
fn sonic_vectors() {
    let folder = common::own_folder().join("sonic");
    let mut datagrams = Vec::new();
    for entry in fs::read_dir(folder).expect("vectors") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "ipfix") {
            let payload = fs::read(&path).expect("a vector");
            datagrams.push(Datagram { session: String::new(), payload });
        }
    }
    assert!(datagrams.len() > 10);
    damage(&datagrams, usize::MAX / 2);
}

fn damage_folder(folder: &Path, places: usize) {
    for case in common::cases(folder) {
        let datagrams = common::datagrams(folder, &case);
        damage(&datagrams[..datagrams.len().min(12)], places);
    }
}

/// The captures of the repository, damaged at every byte.
#[test]
fn own_captures() {
    damage_folder(&common::own_folder(), usize::MAX / 2);
}

/// The captures of the folder that the environment names.
#[test]
fn further_captures() {
    if let Some(folder) = common::further_folder() {
        damage_folder(&folder, 40);
    }
}
