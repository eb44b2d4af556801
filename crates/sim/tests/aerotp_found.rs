//! AeroTP whose rate is found: whole transfers over links of the simulator, by `flow.send_rate = "found"`.
//!
//! Shares are of what the link carries: (1 - loss) × rate × the payload's share of a packet, over the time from the
//! first submission to the last delivery. Lost are data, acknowledgements and reports alike.

use crate::fixture::run;

const PAYLOAD_SHARE: f64 = 1460.0 / 1500.0;

const LINK: &str = "\
[run]
seed = 1
runs = 1
duration = \"600s\"
[hop]
rate = \"10mbit\"
delay = \"5ms\"
queue = \"100 packets\"
[flow]
transport = \"aerotp\"
bytes = \"20MB\"
window = 16384
send_buffer = \"64MB\"
";

/// The goodput in bits a second, verified and complete.
fn goodput(sets: &[&str]) -> f64 {
    let run = run(LINK, sets).remove(0).runs.remove(0);
    assert_eq!(run.error, None, "{sets:?}");
    assert!(run.metrics.completed, "{sets:?}");
    run.metrics
        .flow
        .goodput_bps
        .expect("something was delivered")
}

#[test]
fn a_rate_that_nobody_told_is_found_whatever_is_lost() {
    for (loss, sharing, least) in [
        ("0%", "fair", 0.94),
        ("1%", "fair", 0.94),
        ("5%", "own", 0.94),
        ("10%", "fair", 0.94),
        ("20%", "fair", 0.94),
        ("30%", "own", 0.94),
        ("50%", "fair", 0.91),
    ] {
        let (of, share) = (format!("hop.loss={loss}"), format!("flow.share={sharing}"));
        let found = goodput(&[&of, &share, "flow.send_rate=found"]);
        let told = goodput(&[&of]);
        let lost: f64 = loss.trim_end_matches('%').parse().expect("a number");
        let ideal = 10e6 * (1.0 - lost / 100.0) * PAYLOAD_SHARE;
        println!(
            "{loss} {sharing}: found {:.3}, told {:.3}",
            found / ideal,
            told / ideal
        );
        assert!(found > least * ideal, "{loss}: {}", found / ideal);
    }
}

#[test]
fn long_and_fast_links_are_filled() {
    let far = ["hop.delay=300ms", "flow.bytes=50MB"];
    let fast = [
        "hop.rate=100mbit",
        "hop.delay=50ms",
        "hop.queue=\"1000 packets\"",
        "flow.bytes=100MB",
    ];
    for (link, rate, loss, least) in [
        (&far[..], 10e6, 0.0, 0.88),
        (&far[..], 10e6, 1.0, 0.87),
        (&far[..], 10e6, 5.0, 0.84),
        (&fast[..], 100e6, 0.0, 0.88),
        (&fast[..], 100e6, 1.0, 0.87),
        (&fast[..], 100e6, 5.0, 0.85),
    ] {
        let of = format!("hop.loss={loss}%");
        let mut sets = vec![of.as_str()];
        sets.extend(link);
        let told = goodput(&sets);
        sets.push("flow.send_rate=found");
        let found = goodput(&sets);
        let ideal = rate * (1.0 - loss / 100.0) * PAYLOAD_SHARE;
        println!(
            "{} {loss} %: found {:.3}, told {:.3}",
            link[0],
            found / ideal,
            told / ideal
        );
        assert!(found > least * ideal, "{link:?} {loss}: {}", found / ideal);
    }
}

#[test]
fn on_links_that_come_and_go_the_rate_stays() {
    for (fault, carried, least) in [
        ("hop.loss=\"on-off 25% period 100ms\"", 0.75, 0.82),
        ("hop.outages=\"every 5s for 2s\"", 0.6, 0.86),
    ] {
        let told = goodput(&[fault]);
        let found = goodput(&[fault, "flow.send_rate=found"]);
        let ideal = 10e6 * carried * PAYLOAD_SHARE;
        println!(
            "{fault}: found {:.3}, told {:.3}",
            found / ideal,
            told / ideal
        );
        assert!(found > least * ideal, "{fault}: {}", found / ideal);
    }
}

#[test]
fn a_narrow_way_back_carries_acknowledgements_enough() {
    for (back, least) in [("64kbit", 0.9), ("256kbit", 0.94), ("10mbit", 0.94)] {
        let link = ["hop.delay=10ms", "hop.loss=5%", "flow.bytes=10MB"];
        let back_rate = format!("hop.reverse.rate={back}");
        let mut sets = vec![back_rate.as_str()];
        sets.extend(link);
        let told = goodput(&sets);
        sets.push("flow.send_rate=found");
        let found = goodput(&sets);
        let ideal = 10e6 * 0.95 * PAYLOAD_SHARE;
        println!(
            "{back} back: found {:.3}, told {:.3}",
            found / ideal,
            told / ideal
        );
        assert!(found > least * ideal && told > least * ideal, "{back}");
    }
}

/// Told, a long and fast link is filled where the window holds what is sent in five round trips: of a hundred that are
/// lost five are lost again, and all behind them waits.
#[test]
fn a_window_of_five_round_trips_fills_a_link_that_is_long_and_fast() {
    for loss in ["0%", "5%"] {
        let of = format!("hop.loss={loss}");
        let told = goodput(&[
            "hop.rate=100mbit",
            "hop.delay=300ms",
            "hop.queue=\"1000 packets\"",
            "flow.bytes=200MB",
            "flow.window=32768",
            "flow.send_buffer=48MB",
            &of,
        ]);
        let lost: f64 = loss.trim_end_matches('%').parse().expect("a number");
        let ideal = 100e6 * (1.0 - lost / 100.0) * PAYLOAD_SHARE;
        println!("{loss}: {:.3}", told / ideal);
        assert!(told > 0.85 * ideal, "{loss}: {}", told / ideal);
    }
}
