//! See `catchment_fuzzing::ipfix_collector`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| catchment_fuzzing::ipfix_collector(input));
