//! See `catchment_fuzzing::quantile_otlp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::quantile_otlp(input));
