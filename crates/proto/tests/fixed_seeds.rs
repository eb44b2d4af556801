//! Property tests draw the same cases on every machine: cargo hands them the seed of `.cargo/config.toml`.

use proptest::test_runner::{Config, RngSeed};

#[test]
fn property_tests_draw_from_a_fixed_seed() {
    let seed = Config::default().rng_seed;
    assert!(matches!(seed, RngSeed::Fixed(_)), "{seed}");
}
