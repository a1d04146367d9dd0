//! Rounds of subjects that take turns, so that a busy machine disturbs all alike.

use std::io::{self, Write};
use std::time::{Duration, Instant};

const ROUNDS: usize = 21;

/// Something to be measured: a name and one round of its work. What it returns is a use for what
/// was computed, so that the compiler keeps it.
pub struct Subject<'a>(pub &'a str, pub Box<dyn FnMut() -> u64 + 'a>);

/// Measures all subjects, whose rounds take `items` each; tells best and median in millions of
/// items each second.
pub fn compare(out: &mut dyn Write, title: &str, items: u64, mut subjects: Vec<Subject<'_>>) -> io::Result<()> {
    let mut times = vec![Vec::with_capacity(ROUNDS); subjects.len()];
    for round in 0..=ROUNDS {
        for (Subject(_, work), times) in subjects.iter_mut().zip(&mut times) {
            let begin = Instant::now();
            std::hint::black_box(work());
            // The first round warms up.
            if round > 0 {
                times.push(begin.elapsed());
            }
        }
    }
    writeln!(out, "\n{title}, best / median of {ROUNDS}")?;
    for (Subject(name, _), mut times) in subjects.into_iter().zip(times) {
        times.sort_unstable();
        let rate = |time: Duration| 1e3 * items as f64 / time.as_nanos() as f64;
        writeln!(out, "  {name:<24} {:>9.2} / {:>8.2} M/s", rate(times[0]), rate(times[ROUNDS / 2]))?;
    }
    Ok(())
}
