//! Asking without waiting.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// What a future has to give without waiting.
pub(crate) async fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let now = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    });
    // Unconstrained: a task that has used up its share of the runtime would be told that there is nothing.
    tokio::task::unconstrained(now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_waits_gives_nothing() {
        assert_eq!(now(std::future::ready(7)).await, Some(7));
        assert_eq!(now(std::future::pending::<()>()).await, None);
    }
}
