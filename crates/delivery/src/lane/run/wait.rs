//! What a lane waits for besides its wire.

use std::any::Any;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Ends at the deadline of the drain, if there is or will be one.
pub(super) async fn drained(drain: &mut watch::Receiver<Option<Instant>>) {
    loop {
        let deadline = *drain.borrow_and_update();
        match deadline {
            Some(deadline) => {
                tokio::select! {
                    () = sleep_until(deadline) => return,
                    // The deadline may be moved.
                    changed = drain.changed() => if changed.is_err() { sleep_until(deadline).await; return },
                }
            }
            None if drain.changed().await.is_err() => pending().await,
            None => {}
        }
    }
}

/// Ends as soon as there is a deadline that does not come after `until`.
pub(super) async fn too_late(drain: &mut watch::Receiver<Option<Instant>>, until: Instant) {
    loop {
        if drain.borrow_and_update().is_some_and(|deadline| deadline <= until) {
            return;
        }
        if drain.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}

/// The result of a future, or the message of its panic.
pub(super) async fn caught<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(panic_message(&*panic))),
    })
    .await
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
