//! See `catchment_fuzzing::quantile_exchange`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::quantile_exchange(input));
