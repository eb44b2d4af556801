//! Random sessions: a sample of what `make swarm` runs at length, and every seed that once failed.

use fulmar_sim::experiment::Progress;
use fulmar_sim::swarm;

/// Seeds that once failed, with what they found.
const FAILED_ONCE: [(u64, &str); 12] = [
    (
        34,
        "Strict took application writes during a stall for a spin",
    ),
    (
        46,
        "an AFIN that overtook the first data was answered with a reset: nothing delivered",
    ),
    (80, "the same, with all data delivered"),
    (
        1071,
        "a forgotten connection answered an AFIN with a reset while its acknowledgements were lost",
    ),
    (8760, "the same"),
    (
        53,
        "gateways: a report before ACCEPTED completed the opener, and END was never said again",
    ),
    (1127, "the same"),
    (4017, "the same"),
    (8946, "the same"),
    (
        66_549,
        "gateways: a restarted one took ports again that its peer remembered, and was never heard",
    ),
    (
        1791,
        "gateways: with the hosts at both sides gone, each side waited for the other",
    ),
    (1809, "the same"),
];

#[test]
fn nothing_is_lost_doubled_or_altered_and_every_session_ends() {
    let totals = swarm::sessions(1_000_000..1_000_400, 0, &Progress::default()).unwrap();
    assert_eq!(totals.failures, []);
    assert_eq!(totals.sessions, 400);
    // The drawing must not degenerate into sessions without faults.
    assert!(totals.packets_lost > 5_000 && totals.packets_damaged > 500);
    assert!(totals.flows_finished > 1_200 && totals.flows_resumed > 400);
    assert!(totals.gateway_restarts > 400);
    assert!(totals.link_frames_lost > 100_000 && totals.link_restarts > 2_000);
    assert!(totals.links_held > 800 && totals.hosts_lost > 25);
}

#[test]
fn seeds_that_failed_once_hold() {
    for (seed, found) in FAILED_ONCE {
        let totals = swarm::sessions(seed..seed + 1, 1, &Progress::default()).unwrap();
        assert_eq!(totals.failures, [], "seed {seed}: {found}");
    }
}
