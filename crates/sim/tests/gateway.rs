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

#[test]
fn a_window_grows_to_what_a_long_and_fast_link_takes() {
    let sets = [
        "sweep.hop.loss=[\"0%\", \"5%\"]",
        "hop.rate=100mbit",
        "hop.delay=300ms",
        "flow.mode=reliable",
        "flow.bytes=200MB",
        "flow.credit=4194304B",
        "flow.window=32768",
        "flow.send_buffer=48MB",
        "run.runs=1",
    ];
    let points = run(GATEWAY, &sets);
    assert_eq!(points.len(), 2);
    for (point, loss) in points.iter().zip([0.0, 0.05]) {
        let metrics = &point.runs[0].metrics;
        assert_eq!(metrics.flow.delivered_bytes, 200_000_000, "{loss}");
        let ideal = (1.0 - loss) * 100e6 * 1472.0 / 1500.0;
        let reached = metrics.flow.goodput_bps.unwrap_or_default() / ideal;
        println!("{loss}: {reached:.3}");
        assert!(reached > 0.85, "{reached:.3} of the ideal at loss {loss}");
    }
}

/// Links as long and as fast as gateways are asked to fill: the rate, the delay of a way and the queue, the transfer, and
/// the least shares at 0, 1 and 5 % loss.
const LONG_LINKS: [(&str, &str, &str, &str, [f64; 3]); 3] = [
    ("10mbit", "300ms", "500 packets", "50MB", [0.92, 0.91, 0.91]),
    ("100mbit", "50ms", "833 packets", "100MB", [0.92, 0.9, 0.9]),
    (
        "100mbit",
        "300ms",
        "5000 packets",
        "200MB",
        [0.84, 0.75, 0.66],
    ),
];

#[test]
fn a_rate_that_nobody_told_fills_long_and_fast_links_between_gateways() {
    let mut short = Vec::new();
    for (rate, delay, queue, bytes, least) in LONG_LINKS {
        for (loss, least) in [0.0, 0.01, 0.05].into_iter().zip(least) {
            let reached = found_share((rate, delay, queue, bytes), loss);
            println!("{rate} {delay} {loss}: {reached:.3}");
            if reached < least {
                short.push((rate, loss, reached));
            }
        }
    }
    assert!(short.is_empty(), "{short:?}");
}

/// The share of the ideal that one transfer gets between gateways that find the rate.
fn found_share((rate, delay, queue, bytes): (&str, &str, &str, &str), loss: f64) -> f64 {
    let texts = [
        format!("sweep.hop.loss=[\"{}%\"]", 100.0 * loss),
        format!("hop.rate={rate}"),
        format!("hop.delay={delay}"),
        format!("hop.queue={queue}"),
        format!("flow.bytes={bytes}"),
    ];
    let mut sets: Vec<&str> = texts.iter().map(String::as_str).collect();
    sets.extend([
        "flow.mode=reliable",
        "flow.credit=4194304B",
        "flow.window=32768",
        "flow.send_buffer=48MB",
        "flow.send_rate=found",
        "run.runs=1",
    ]);
    let points = run(GATEWAY, &sets);
    let point = &points[0];
    let bits: f64 = point.runs[0].metrics.flow.delivered_bytes as f64 * 8.0;
    assert!(bits > 0.0, "{rate} {loss}");
    let rate: f64 = rate.trim_end_matches("mbit").parse().expect("a number");
    let ideal = (1.0 - loss) * rate * 1e6 * 1472.0 / 1500.0;
    point.runs[0].metrics.flow.goodput_bps.unwrap_or_default() / ideal
}
