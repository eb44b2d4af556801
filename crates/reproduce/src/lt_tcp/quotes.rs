//! A check that the claims quote the numbers in the tables of `reference/`.

use super::families::PERCENT;
use super::published::{
    PUBLISHED_ARQ, PUBLISHED_GOODPUT, PUBLISHED_HARQ, PUBLISHED_LATENCY, PUBLISHED_LINK_GOODPUT,
    PUBLISHED_RESIDUAL,
};
use super::view::{LOSSY, published};
use super::{claims_link, claims_transport};

/// The numbers in a claim's sentence that should be the table's, in the table's order.
fn quoted(id: &str) -> Vec<String> {
    let mut claims = claims_link::CLAIMS.iter().chain(&claims_transport::CLAIMS);
    let claim = claims.find(|claim| claim.id == id).expect("a claim");
    let words = claim.says.split([' ', ',', ':', ';']);
    let is_number = |word: &&str| word.contains('.') && word.parse::<f64>().is_ok();
    words.filter(is_number).map(str::to_owned).collect()
}

#[test]
fn the_claims_quote_the_tables_of_the_slides() {
    for (id, table, percents, unit) in [
        ("arq-latency", &PUBLISHED_ARQ, &PERCENT[..], 1e-3),
        ("harq-latency", &PUBLISHED_HARQ, &PERCENT[..], 1e-3),
        ("table-latency", &PUBLISHED_LATENCY, &PERCENT[..], 1e-3),
        (
            "table-link-goodput",
            &PUBLISHED_LINK_GOODPUT,
            &PERCENT[..],
            1e6,
        ),
        ("table-residual", &PUBLISHED_RESIDUAL, &PERCENT[..], 0.01),
        ("table-goodput", &PUBLISHED_GOODPUT, LOSSY, 1e6),
    ] {
        let table = published(table, percents).expect("every error rate");
        let table: Vec<String> = table
            .iter()
            .map(|value| format!("{:.2}", value / unit))
            .collect();
        assert_eq!(quoted(id), table, "{id}");
    }
}

#[test]
fn the_claim_on_residual_loss_quotes_quotients_of_the_table() {
    let goodput = published(&PUBLISHED_GOODPUT, &PERCENT).expect("every error rate");
    let link = published(&PUBLISHED_LINK_GOODPUT, &PERCENT).expect("every error rate");
    let pairs = goodput.iter().zip(&link);
    let shares: Vec<String> = pairs.map(|(a, b)| format!("{:.2}", a / b)).collect();
    assert_eq!(quoted("overcomes-residual"), shares);
}
