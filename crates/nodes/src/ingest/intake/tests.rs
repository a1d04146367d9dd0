use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use catchment_columns::{Budget, ColumnsError, Step};
use otel_arrow_dfe_engine::memory_limiter::{MemoryPressureLevel, MemoryPressureState};

use super::*;

/// Items of one byte.
#[derive(Default)]
pub(crate) struct Fake(usize);

impl Fake {
    pub(crate) fn intake(max_messages: usize) -> Intake<Self> {
        let limits = BatchConfig { max_messages, ..BatchConfig::default() };
        let pressure = LocalReceiverAdmissionState::from_process_state(&MemoryPressureState::default());
        Intake::new(Self::default(), limits, MaxInFlight(4), pressure)
    }

    pub(crate) fn push(intake: &Intake<Self>) {
        let _ = intake.add(1, UnderPressure::Shed, |fake| {
            fake.0 += 1;
            1
        });
    }
}

pub(crate) struct Nothing;

impl Job for Nothing {
    fn step(&mut self, _: Budget) -> Result<Step, ColumnsError> {
        Ok(Step::End)
    }
}

impl Pending for Fake {
    type Job = Nothing;

    fn items(&self) -> usize {
        self.0
    }

    fn bytes(&self) -> usize {
        self.0
    }

    fn take_payload(&mut self) -> Payload<Nothing> {
        self.0 = 0;
        Payload::Job(Nothing)
    }
}

fn waits(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

fn press(intake: &Intake<Fake>, generation: u64, level: MemoryPressureLevel) {
    intake.apply_pressure(MemoryPressureChanged { generation, level, retry_after_secs: 1, usage_bytes: 0 });
}

/// Sources wait while the batch is full, and go on when it has been taken out.
#[tokio::test]
async fn a_full_batch_makes_sources_wait() {
    let intake = Fake::intake(2);
    Fake::push(&intake);
    intake.room().await;
    Fake::push(&intake);
    let (mut room, mut let_on) = (pin!(intake.room()), pin!(intake.let_on()));
    assert!(waits(room.as_mut()) && waits(let_on.as_mut()));
    let taken = intake.take();
    assert_eq!((taken.items, taken.bytes, taken.oldest.is_some()), (2, 2, true));
    assert!(!waits(room.as_mut()) && !waits(let_on.as_mut()));
    assert_eq!(intake.due(), None);
}

/// Under memory pressure what cannot wait is shed and counted, and who can wait does so until it is over.
#[tokio::test]
async fn under_pressure_datagrams_are_shed_and_streams_wait() {
    let intake = Fake::intake(100);
    press(&intake, 1, MemoryPressureLevel::Hard);
    Fake::push(&intake);
    let mut let_on = pin!(intake.let_on());
    assert!(waits(let_on.as_mut()));
    intake.room().await;
    let shed = intake.add(1, UnderPressure::Keep, |fake| {
        fake.0 += 1;
        1
    });
    assert!(!shed);
    press(&intake, 2, MemoryPressureLevel::Soft);
    assert!(!waits(let_on.as_mut()));
    let books = intake.books();
    assert_eq!((books.received, books.shed, books.waiting()), (2, 1, 1));
}

/// A batch may follow as long as what is in flight and the batch itself are within the limit.
#[test]
fn what_is_in_flight_holds_the_next_batch_back() {
    let intake = Fake::intake(100);
    (0..3).for_each(|_| Fake::push(&intake));
    assert!(intake.may_follow());
    let key = intake.in_flight.add(2, Box::new(|| true));
    assert!(!intake.may_follow());
    intake.in_flight.settle(key);
    assert!(intake.may_follow());
}

#[test]
fn durations_are_merged() {
    let mut sum = Mmsc::default();
    let mut more = Mmsc::default();
    more.record(2.0);
    more.record(4.0);
    merge(&mut sum, &Mmsc::default());
    merge(&mut sum, &more);
    let mut again = Mmsc::default();
    again.record(1.0);
    merge(&mut sum, &again);
    assert_eq!((sum.min, sum.max, sum.sum, sum.count), (1.0, 4.0, 7.0, 3));
}
