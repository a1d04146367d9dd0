//! See `catchment_fuzzing::syslog_sampling`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::syslog_sampling(input));
