//! See `catchment_fuzzing::sonic_admit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::sonic_admit(input));
