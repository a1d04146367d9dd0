//! See `catchment_fuzzing::flow_metrics`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::flow_metrics(input));
