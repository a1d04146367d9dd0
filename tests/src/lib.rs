//! Whole-process tests: the binary, real senders, faults.
