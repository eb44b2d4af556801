//! Random sessions: a sample of what `make swarm` runs at length, and every seed that once failed.

use fulmar_sim::experiment::ExperimentProgress;
use fulmar_sim::swarm;

/// Seeds that once failed, with what they found.
const FAILED_ONCE: [(u64, &str); 31] = [
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
    (
        94_123_316_031_848,
        "LT-TCP: a burst of losses, which counts packets, outlasted the 20 SYNs that were drawn",
    ),
    (
        42_086,
        "gateways: no message of a flow had come at once, and one that was sent again was read after its deadline",
    ),
    (4810, "the same"),
    (12_905, "the same"),
    (22_747, "the same"),
    (
        1_000_508,
        "gateways: all paths went down in a silence, and nothing asked when they were back",
    ),
    (1_027_855, "the same"),
    (1_040_014, "the same"),
    (1_044_862, "the same"),
    (1_054_807, "the same"),
    (1_059_598, "the same"),
    (1_060_052, "the same"),
    (1_078_443, "the same"),
    (1_083_713, "the same"),
    (1_087_010, "the same"),
    (1_098_049, "the same"),
    (
        1_062_842,
        "gateways: between the word that a path is gone and that its peer has restarted an opening from before left again",
    ),
    (2_003_287, "gone with the mend of the same"),
    (2_033_126, "the same"),
];

#[test]
fn nothing_is_lost_doubled_or_altered_and_every_session_ends() {
    let totals = swarm::sessions(1_000_000..1_000_400, 0, &ExperimentProgress::default()).unwrap();
    assert_eq!(totals.failures, []);
    assert_eq!(totals.sessions, 400);
    // The drawing must not degenerate into sessions without faults.
    assert!(totals.packets_lost > 5_000 && totals.packets_damaged > 500);
    assert!(totals.flows_finished > 1_200 && totals.flows_resumed > 400);
    assert!(totals.gateway_restarts > 400);
    assert!(totals.link_frames_lost > 100_000 && totals.link_restarts > 2_000);
    assert!(totals.links_held > 800 && totals.hosts_lost > 25);
    assert!(totals.messages_judged > 0, "{}", totals.messages_judged);
    assert!(totals.paths_found > 2_000 && totals.packets_on_further_paths > 10_000);
}

/// Seeds of [`swarm::link_sessions`] that once failed, with what they found.
const LINKS_FAILED_ONCE: [(u64, &str); 22] = [
    (
        1_001_425,
        "LL-HARQ: damage in a block's number that 16 bits of check overlooked stopped the hop",
    ),
    (1_002_029, "the same"),
    (1_002_234, "the same"),
    (1_002_293, "the same"),
    (1_006_525, "the same"),
    (1_011_797, "the same, of the first unit that was heard"),
    (
        1_003_434,
        "SLACP: a backlog that nobody had understood went out again before what was new",
    ),
    (
        1_000_571,
        "SLACP: an acknowledgement that a peer did not understand was said again too late",
    ),
    (1_008_017, "the same"),
    (
        1_000_785,
        "LL-HARQ: an answer that was held up took the receiver back to what it had released",
    ),
    (
        1_009_907,
        "LL-ARQ: a packet that stood behind a later one waited longer than it may",
    ),
    (
        1_003_376,
        "LL-HARQ: a block of enough units that contradict each other was waited for for ever",
    ),
    (1_005_590, "the same"),
    (1_008_061, "the same"),
    (
        1_009_320,
        "LL-HARQ: damage in a block's number put a unit into the next block",
    ),
    (
        117_600_009_527_009,
        "go-back-n: a packet of a life that was not confirmed yet waited at the receiver",
    ),
    (33_393_985_218_246, "the same"),
    (154_438_186_580_736, "the same"),
    (
        93_003_164_851_958,
        "LL-HARQ: the promise left out the way of what waits for a word about a life, and for a second round",
    ),
    (
        27_053,
        "LL-HARQ: a unit that damage had moved ahead began its block because one before it came",
    ),
    (
        89_416,
        "LL-HARQ: behind a short unit a block was passed over while a long unit of it was on its way",
    ),
    (
        1_030_357,
        "selective repeat: a frame that came twice drove out another one that waited for a restarted peer's answer",
    ),
];

#[test]
fn sessions_of_each_link_layer_keep_what_it_promises() {
    let totals =
        swarm::link_sessions(1_000_000..1_002_000, 0, &ExperimentProgress::default()).unwrap();
    assert_eq!(totals.failures, []);
    assert_eq!(totals.layers.len(), 8);
    for layer in &totals.layers {
        assert_eq!(layer.sessions, 2_000, "{layer:?}");
        assert!(layer.restarts > 2_000, "{layer:?}");
        assert!(layer.frames_lost > 20_000, "{layer:?}");
        assert!(layer.frames_damaged > 4_000, "{layer:?}");
    }
}

#[test]
fn seeds_of_link_layers_that_failed_once_hold() {
    for (seed, found) in LINKS_FAILED_ONCE {
        let totals =
            swarm::link_sessions(seed..seed + 1, 1, &ExperimentProgress::default()).unwrap();
        assert_eq!(totals.failures, [], "seed {seed}: {found}");
    }
}

#[test]
fn seeds_that_failed_once_hold() {
    for (seed, found) in FAILED_ONCE {
        let totals = swarm::sessions(seed..seed + 1, 1, &ExperimentProgress::default()).unwrap();
        assert_eq!(totals.failures, [], "seed {seed}: {found}");
    }
}
