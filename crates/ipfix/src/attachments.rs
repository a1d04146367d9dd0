//! What consumers keep with a template.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// Values that are kept at a time.
const MAX_ATTACHMENTS: usize = 8;

type Attachment = Arc<dyn Any + Send + Sync>;

/// A few values of any type by key. A clone begins empty.
#[derive(Debug, Default)]
pub(crate) struct Attachments(Mutex<Vec<(u64, Attachment)>>);

impl Attachments {
    /// The value of `key` if it has the type asked for, or what `make` gives.
    pub(crate) fn get_or_make<T: Any + Send + Sync>(&self, key: u64, make: impl FnOnce() -> T) -> Arc<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().filter(|(known, _)| *known == key);
        if let Some(value) = known.filter_map(|(_, value)| Arc::clone(value).downcast().ok()).next() {
            return value;
        }
        let value = Arc::new(make());
        if kept.len() >= MAX_ATTACHMENTS {
            let _ = kept.remove(0);
        }
        kept.push((key, Arc::clone(&value) as Attachment));
        value
    }
}

impl Clone for Attachments {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value is made once, one of another key or type beside it, and the oldest of too many again.
    #[test]
    fn made_once() {
        let kept = Attachments::default();
        let first = kept.get_or_make(1, || String::from("one"));
        assert!(Arc::ptr_eq(&first, &kept.get_or_make(1, || String::from("other"))));
        assert_eq!(*kept.get_or_make(1, || 7_u32), 7);
        assert_eq!(*kept.get_or_make(2, || String::from("two")), "two");
        for key in 3..=10 {
            let _ = kept.get_or_make(key, String::new);
        }
        assert_eq!(*kept.get_or_make(1, || String::from("again")), "again");
        assert!(kept.0.lock().expect("not poisoned").len() <= MAX_ATTACHMENTS);
    }
}
