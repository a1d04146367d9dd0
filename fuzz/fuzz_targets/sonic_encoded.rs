//! See `catchment_fuzzing::sonic_encoded`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::sonic_encoded(input));
