//! Applications that speak through two gateways: the goodput of the shipped scenario, and a slow reader
//! beside a fast one.

use crate::fixture::run;

const GATEWAY: &str = include_str!("../../../scenarios/gateway.toml");

/// The least goodput at each loss of the sweep, as a share of (1 - loss) x rate x 1472/1500.
const SHARES: [(f64, f64); 4] = [(0.0, 0.93), (0.1, 0.93), (0.3, 0.93), (0.5, 0.90)];

#[test]
fn a_transfer_through_two_gateways_reaches_its_share_of_the_ideal() {
    let sets = ["run.runs=2", "flow.bytes=5MB"];
    let points = run(GATEWAY, &sets);
    assert_eq!(points.len(), SHARES.len());
    for (point, (loss, share)) in points.iter().zip(SHARES) {
        for run in &point.runs {
            assert_eq!(run.metrics.flow.delivered_bytes, 5_000_000, "{loss}");
            let ideal = (1.0 - loss) * 10e6 * 1472.0 / 1500.0;
            let goodput = run.metrics.flow.goodput_bps.unwrap_or_default();
            let reached = goodput / ideal;
            assert!(reached >= share, "{reached:.3} of the ideal at loss {loss}");
        }
    }
}
