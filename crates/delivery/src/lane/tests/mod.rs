//! A scripted server behind a wire in memory, under paused time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use crate::outcome::Outcome;
use crate::payload::{EncodeError, Payload};
use crate::signal::Signal;
use crate::wire::{Tally, Wire};

mod cases;
mod faults;
mod properties;

/// Items with numbers, in arrival order over all payloads of a lane. Not `Send`, as payloads need not be.
#[derive(Clone, Debug)]
struct Load {
    signal: Signal,
    items: Rc<[u64]>,
    range: std::ops::Range<usize>,
    item_bytes: usize,
    divisible: bool,
}

impl Load {
    fn new(signal: Signal, items: std::ops::Range<u64>) -> Self {
        let items: Rc<[u64]> = items.collect();
        Self { signal, range: 0..items.len(), items, item_bytes: 10, divisible: true }
    }

    fn logs(items: std::ops::Range<u64>) -> Self {
        Self::new(Signal::Logs, items)
    }

    fn numbers(&self) -> &[u64] {
        &self.items[self.range.clone()]
    }
}

impl Payload for Load {
    fn signal(&self) -> Signal {
        self.signal
    }

    fn items(&self) -> usize {
        self.range.len()
    }

    fn bytes(&self) -> usize {
        self.range.len() * self.item_bytes
    }

    fn split(&self, at: usize) -> Result<(Self, Self), EncodeError> {
        if !self.divisible {
            return Err(EncodeError::new("indivisible"));
        }
        let middle = self.range.start + at;
        let head = Self { range: self.range.start..middle, ..self.clone() };
        Ok((head, Self { range: middle..self.range.end, ..self.clone() }))
    }
}

/// What the server does with one attempt.
#[derive(Clone, Debug)]
enum Step {
    Ok,
    /// Takes so long, then takes it.
    Late(Duration),
    Partial(u64),
    Retry(Option<Duration>),
    Permanent,
    /// Cut before it was taken, or behind it.
    Cut {
        stored: bool,
    },
    /// Never answers; has taken it or not.
    Hang {
        stored: bool,
    },
    Panic,
    Fatal,
    /// Answers this.
    Say(Outcome),
}

/// What happened on the server.
#[derive(Debug, Default)]
struct Server {
    /// Items in the order in which they were taken, also again.
    taken: Vec<u64>,
    /// Requests: when, and which items.
    attempts: Vec<(Instant, Vec<u64>)>,
    closed: bool,
    /// Bytes of the largest request with more than one item.
    largest: usize,
}

impl Server {
    /// Items in the order in which they were first taken.
    fn first(&self) -> Vec<u64> {
        let mut seen = HashMap::new();
        self.taken.iter().copied().filter(|item| seen.insert(*item, ()).is_none()).collect()
    }

    fn duplicates(&self) -> u64 {
        (self.taken.len() - self.first().len()) as u64
    }
}

type Script = Box<dyn FnMut(&[u64]) -> Step>;

/// A wire with a script instead of a connection.
struct Scripted {
    server: Rc<RefCell<Server>>,
    script: Script,
    /// Requests over so many items are too large for the server; it says so in sizes or not.
    cap: usize,
    sizes: bool,
    /// An item that cannot be encoded.
    poison: Option<u64>,
    out: bool,
    tally: Tally,
}

impl Scripted {
    fn new(script: impl FnMut(&[u64]) -> Step + 'static) -> (Self, Rc<RefCell<Server>>) {
        let server = Rc::new(RefCell::new(Server::default()));
        let script: Script = Box::new(script);
        let wire = Self {
            server: server.clone(),
            script,
            cap: usize::MAX,
            sizes: false,
            poison: None,
            out: false,
            tally: Tally::default(),
        };
        (wire, server)
    }

    /// Steps by their order; `Ok` when there are no more.
    fn steps(steps: impl IntoIterator<Item = Step>) -> (Self, Rc<RefCell<Server>>) {
        let steps: Vec<_> = steps.into_iter().collect();
        let mut steps = steps.into_iter();
        Self::new(move |_| steps.next().unwrap_or(Step::Ok))
    }
}

impl Wire<Load> for Scripted {
    type Kept = Vec<u64>;

    async fn attempt(&mut self, payloads: &[Load], kept: &mut Option<Vec<u64>>, _: Instant) -> Outcome {
        let items: Vec<u64> = payloads.iter().flat_map(|load| load.numbers().to_vec()).collect();
        assert!(!items.is_empty(), "an empty request");
        assert!(payloads.iter().all(|load| load.signal == payloads[0].signal), "signals are mixed");
        if let Some(poison) = self.poison
            && items.contains(&poison)
        {
            return Outcome::Unencodable { message: "poison".to_owned() };
        }
        assert_eq!(kept.get_or_insert_with(|| items.clone()), &items, "a retry sends the same");
        let bytes: usize = payloads.iter().map(Payload::bytes).sum();
        {
            let mut server = self.server.borrow_mut();
            server.attempts.push((Instant::now(), items.clone()));
            if items.len() > 1 {
                server.largest = server.largest.max(bytes);
            }
        }
        self.tally.raw_bytes += bytes as u64;
        if items.len() > self.cap {
            let sizes = self.sizes.then_some((items.len() as u64, self.cap as u64));
            return Outcome::Oversize { sizes, message: "too large".to_owned() };
        }
        let take = |items: &[u64]| self.server.borrow_mut().taken.extend_from_slice(items);
        self.out = true;
        let outcome = match (self.script)(&items) {
            Step::Ok => {
                take(&items);
                Outcome::OK
            }
            Step::Late(delay) => {
                sleep(delay).await;
                take(&items);
                Outcome::OK
            }
            Step::Partial(rejected) => {
                take(&items[items.len().min(rejected as usize)..]);
                Outcome::Accepted { rejected, warning: Some("some are bad".to_owned()) }
            }
            Step::Retry(delay) => Outcome::Retry { delay, ambiguous: false, message: "busy".to_owned() },
            Step::Permanent => Outcome::permanent("never"),
            Step::Cut { stored } => {
                if stored {
                    take(&items);
                }
                Outcome::unanswered("cut")
            }
            Step::Hang { stored } => {
                if stored {
                    take(&items);
                }
                pending().await
            }
            Step::Panic => panic!("scripted panic"),
            Step::Fatal => Outcome::Fatal { message: "scripted end".to_owned() },
            Step::Say(outcome) => outcome,
        };
        self.out = false;
        outcome
    }

    fn abandon(&mut self) -> bool {
        std::mem::take(&mut self.out)
    }

    fn tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    async fn close(&mut self) {
        self.server.borrow_mut().closed = true;
    }
}

/// Runs a future with local tasks under paused time.
fn simulate<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(LocalSet::new().run_until(future))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
