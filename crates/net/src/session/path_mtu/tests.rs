use super::*;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::Bitrate;

/// The delay of each way; answers come after two of them.
const DELAY: Duration = Duration::from_millis(5);

/// A path that carries packets up to `limit`, and loses probes or answers with probability `loss`.
struct Road {
    mtu: PathMtu,
    now: Instant,
    limit: u64,
    loss: f64,
    busy: bool,
    rng: Rng,
    changes: Vec<u64>,
    answers: Vec<(Instant, u32)>,
    probes: usize,
    probe_bytes: u64,
}

impl Road {
    fn new(max: u64, limit: u64, loss: f64, seed: u64) -> Self {
        let mut mtu = PathMtu::new(MtuConfig {
            max: ByteCount(max),
            rate: Some(Bitrate::from_bits_per_second(10_000_000)),
            ..MtuConfig::default()
        });
        mtu.on_new_path(Instant::START);
        Self {
            mtu,
            now: Instant::START,
            limit,
            loss,
            busy: true,
            rng: Rng::from_seed(seed),
            changes: Vec::new(),
            answers: Vec::new(),
            probes: 0,
            probe_bytes: 0,
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            if self.busy {
                self.mtu.on_sent(self.now, self.mtu.packet());
                (0..FULL_BEFORE_SEARCH).for_each(|_| self.mtu.on_full(self.now));
            }
            let due = self.mtu.next_deadline().map(|due| due.at.max(self.now));
            let answer = self.answers.first().map(|(at, _)| *at);
            match (due, answer) {
                (due, Some(at)) if at <= until && due.is_none_or(|due| at <= due) => {
                    self.now = at;
                    let (_, id) = self.answers.remove(0);
                    let changed = self.mtu.on_answer(self.now, id);
                    self.changes.extend(changed.map(|size| size.0));
                }
                (Some(at), _) if at <= until => {
                    self.now = at;
                    self.probe();
                }
                _ => break,
            }
        }
        self.now = until;
    }

    fn probe(&mut self) {
        let Some(tried) = self.mtu.due(self.now, Some(DELAY * 2), false) else {
            return;
        };
        let known = tried.known.map(|size| (tried.id + 1, size));
        for (id, size) in [(tried.id, tried.packet)].into_iter().chain(known) {
            self.probes += 1;
            self.probe_bytes += size.0;
            if size.0 <= self.limit && !self.rng.chance(self.loss) {
                self.answers.push((self.now + DELAY * 2, id));
            }
        }
    }
}

#[test]
fn the_largest_size_is_tried_first_and_found_within_a_few_round_trips() {
    for max in [1_500, 9_000] {
        let mut road = Road::new(max, max, 0.0, 1);
        road.run(DELAY * 2 * 10);
        assert_eq!(road.changes, [max]);
    }
}

#[test]
fn any_limit_is_found_to_four_octets_within_two_seconds() {
    for limit in [1_280, 1_284, 1_300, 1_400, 1_420, 1_492, 1_499] {
        let mut road = Road::new(1_500, limit, 0.0, 1);
        road.run(Duration::from_secs(2));
        let found = road.mtu.packet().0;
        assert!(
            (limit.saturating_sub(4)..=limit).contains(&found),
            "{limit}: {found}"
        );
    }
    let mut road = Road::new(9_000, 1_500, 0.0, 1);
    road.run(Duration::from_secs(2));
    assert_eq!(road.changes, [1_500], "Ethernet's size is the second guess");
}

#[test]
fn an_idle_path_is_not_probed_once_its_size_is_known() {
    let mut road = Road::new(1_500, 1_500, 0.0, 1);
    road.run(Duration::from_secs(1));
    road.busy = false;
    road.run(Duration::from_secs(3));
    let probes = road.probes;
    road.run(Duration::from_secs(3_600));
    assert_eq!(road.probes, probes);
}

#[test]
fn who_fills_no_packets_asks_for_the_round_trip_alone_at_first() {
    let mut road = Road::new(1_500, 1_500, 0.0, 1);
    road.busy = false;
    road.run(HELD_AT_FIRST / 2);
    // Packets that are not full, and some that are.
    for _ in 1..FULL_BEFORE_SEARCH {
        road.mtu.on_sent(road.now, ByteCount(1_000));
        road.mtu.on_full(road.now);
    }
    road.run(HELD_AT_FIRST / 4);
    assert_eq!((road.probes, road.probe_bytes), (1, SMALL.0));
    road.mtu.on_full(road.now);
    road.run(DELAY * 2);
    assert_eq!(road.changes, [1_500], "at once");
    // Nothing else holds an idle path's size up.
    let mut road = Road::new(1_500, 1_500, 0.0, 1);
    road.busy = false;
    road.run(HELD_AT_FIRST + DELAY * 2);
    assert_eq!(road.changes, [1_500]);
}

#[test]
fn while_full_packets_arrive_who_only_answers_tries_nothing_until_the_path_is_no_longer_young() {
    // They begin to arrive before the first try, or when that one is lost.
    for (begin, before) in [(40, SMALL.0), (220, SMALL.0 + 1_500)] {
        let mut road = Road::new(1_500, 1_500, 0.0, 1);
        road.busy = false;
        road.run(Duration::from_millis(150));
        road.loss = 1.0;
        road.run(Duration::from_millis(begin));
        road.loss = 0.0;
        while road.now < Instant::START + YOUNG - DELAY * 2 {
            road.mtu.on_full_arrived(road.now);
            road.run(DELAY);
        }
        assert_eq!(road.probe_bytes, before);
        for _ in 0..100 {
            road.mtu.on_full_arrived(road.now);
            road.run(DELAY);
        }
        assert_eq!(road.changes, [1_500]);
    }
}

#[test]
fn outages_do_not_make_a_session_young_again() {
    let mut road = Road::new(1_500, 1_500, 0.0, 1);
    road.busy = false;
    for n in 0..40 * 20 {
        if n % 100 == 0 {
            road.mtu.on_new_path(road.now);
        }
        road.mtu.on_full_arrived(road.now);
        road.run(Duration::from_millis(50));
    }
    assert_eq!(road.changes, [1_500]);
}

#[test]
fn the_system_s_word_that_a_size_is_too_large_is_taken_right_behind_a_new_path() {
    let mut road = Road::new(1_500, 1_500, 0.0, 1);
    road.run(Duration::from_secs(1));
    assert_eq!(road.mtu.packet(), ByteCount(1_500));
    road.limit = 1_400;
    road.mtu.on_new_path(road.now);
    assert_eq!(road.mtu.on_too_large(road.now), Some(ByteCount(1_280)));
    road.run(Duration::from_secs(5));
    let found = road.mtu.packet().0;
    assert!((1_396..=1_400).contains(&found), "{found}");
}

#[test]
fn arrivals_hold_nothing_up_where_full_packets_leave() {
    for seed in 1..=5 {
        let mut road = Road::new(1_500, 1_500, 0.75, seed);
        for _ in 0..200 {
            road.mtu.on_full_arrived(road.now);
            road.run(DELAY);
        }
        assert_eq!(road.changes, [1_500], "seed {seed}");
    }
}

#[test]
fn the_round_trip_is_asked_for_until_it_is_answered() {
    let mut road = Road::new(1_500, 0, 0.0, 1);
    road.busy = false;
    road.run(HELD_AT_FIRST / 2);
    assert!(road.probes > 2, "{}", road.probes);
    assert_eq!(road.probe_bytes, road.probes as u64 * SMALL.0);
    road.limit = 1_500;
    road.run(PACE + DELAY * 2);
    let probes = road.probes;
    road.run(HELD_AT_FIRST / 5);
    assert_eq!(road.probes, probes);
}

#[test]
fn a_larger_size_is_confirmed_on_a_new_path_once_packets_of_it_leave_or_after_a_moment() {
    let known = || {
        let mut road = Road::new(1_500, 1_500, 0.0, 1);
        road.run(Duration::from_secs(1));
        road.busy = false;
        road.limit = 1_300;
        road.mtu.on_new_path(road.now);
        road
    };
    let mut road = known();
    let (probes, octets) = (road.probes, road.probe_bytes);
    road.run(HELD_AT_FIRST * 9 / 10);
    assert_eq!(
        (road.probes - probes, road.probe_bytes - octets),
        (1, SMALL.0)
    );
    road.run(Duration::from_secs(3));
    assert_eq!(road.changes[..2], [1_500, 1_280]);
    let mut road = known();
    road.busy = true;
    road.run(Duration::from_millis(500));
    assert_eq!(road.changes[..2], [1_500, 1_280]);
    // One alone is enough, whatever arrives.
    let mut road = known();
    road.mtu.on_full_arrived(road.now);
    road.mtu.on_sent(road.now, ByteCount(1_500));
    road.run(DELAY);
    assert!(road.probe_bytes > octets + SMALL.0, "a confirmation");
}

#[test]
fn confirming_takes_a_thousandth_of_the_link_and_searching_a_tenth() {
    let mut road = Road::new(1_500, 1_500, 0.0, 1);
    road.run(Duration::from_secs(1));
    let before = road.probe_bytes;
    road.run(Duration::from_secs(100));
    // 125 MB cross in 100 s.
    let confirming = road.probe_bytes - before;
    assert!(confirming <= 125_000, "{confirming}");
    // Nothing is answered at all.
    let mut road = Road::new(1_500, 0, 0.0, 1);
    road.run(Duration::from_secs(1));
    assert!(road.probe_bytes <= 125_000, "{}", road.probe_bytes);
    road.run(Duration::from_secs(1));
    let before = road.probe_bytes;
    road.run(Duration::from_secs(10));
    let later = road.probe_bytes - before;
    assert!(later <= 12_500_000 / 100, "{later}");
}

#[test]
fn random_loss_rarely_rules_a_size_out() {
    // Three of four probes go unanswered: 50 % loss each way.
    let found = (1..=200)
        .filter(|seed| {
            let mut road = Road::new(1_500, 1_500, 0.75, *seed);
            road.run(Duration::from_secs(3));
            road.mtu.packet() == ByteCount(1_500)
        })
        .count();
    // A search of 120 tries finds it unless it is ruled out (0.11 %) or unanswered for 64 tries
    // (1e-8): 0.2 of 200 are expected to fail; 4 is beyond the 99.99 % quantile of that Poisson law.
    assert!(found >= 196, "{found} of 200");
}

#[test]
fn random_loss_does_not_shrink_the_path() {
    // 40 % loss each way: 36 % are answered.
    for seed in 1..=20 {
        let mut road = Road::new(1_500, 1_500, 0.64, seed);
        road.run(Duration::from_secs(100));
        // 50 confirmations, each wrong with probability 0.64 (0.64/1.64)^12 = 8e-6, and a search:
        // 5e-4. Of 20 paths, 0.02 are expected to fail.
        assert_eq!(road.changes, [1_500], "seed {seed}");
    }
}

#[test]
fn a_black_hole_falls_back_to_what_every_path_carries_and_is_searched_below() {
    let mut road = Road::new(1_500, 1_500, 0.0, 1);
    road.run(Duration::from_secs(20));
    road.limit = 1_300;
    road.mtu.on_silence(road.now);
    road.run(Duration::from_secs(1));
    assert_eq!(road.changes[..2], [1_500, 1_280]);
    road.run(Duration::from_secs(2));
    let found = road.mtu.packet().0;
    assert!((1_296..=1_300).contains(&found), "{found}");
    road.limit = 1_500;
    road.run(RAISE_EVERY);
    assert_eq!(road.mtu.packet(), ByteCount(1_500), "raised in time");
}

#[test]
fn a_path_that_shrinks_while_a_larger_size_is_searched_is_noticed() {
    let mut road = Road::new(9_000, 1_500, 0.0, 1);
    road.run(Duration::from_millis(900));
    assert_eq!(road.changes, [1_500]);
    assert!(matches!(road.mtu.aim, Aim::Raise(_)), "it still searches");
    road.limit = 1_280;
    road.run(Duration::from_secs(3));
    assert_eq!(road.changes[..2], [1_500, 1_280]);
}

#[test]
fn a_word_from_the_network_counts_at_once_for_the_size_in_use() {
    let mut road = Road::new(1_500, 1_500, 0.0, 1);
    assert_eq!(
        road.mtu.on_too_large(road.now),
        None,
        "a probe was too large"
    );
    road.run(Duration::from_secs(1));
    assert_eq!(road.mtu.on_too_large(road.now), Some(ByteCount(1_280)));
}

#[test]
fn a_fixed_size_is_never_probed() {
    let config = MtuConfig::fixed(ByteCount(1_400));
    let mut mtu = PathMtu::new(config);
    mtu.on_new_path(Instant::START);
    mtu.on_sent(Instant::START, ByteCount(1_400));
    assert_eq!(mtu.next_deadline(), None);
    assert_eq!(mtu.packet(), ByteCount(1_400));
}

/// The octets of the tries within 1.5 s of the first one over 64 kbit, of which the first one is lost: the second one
/// is answered after 0.35 s.
fn tried_over_64_kbit(mut mtu: PathMtu, finds_rate: bool) -> ByteCount {
    let round_trip = Some(Duration::from_millis(20));
    let first = Instant::START + HELD_AT_FIRST;
    mtu.on_new_path(Instant::START);
    assert!(
        mtu.due(first - Duration::from_millis(100), round_trip, finds_rate)
            .is_some()
    );
    mtu.on_answer(first - Duration::from_millis(80), 0);
    let mut second_at = None;
    let mut sent = ByteCount::ZERO;
    for millis in 0..1_500 {
        let now = first + Duration::from_millis(millis);
        if second_at.is_some_and(|at| now == at + Duration::from_millis(370)) {
            mtu.on_answer(now, 5);
        }
        if let Some(due) = mtu.due(now, round_trip, finds_rate) {
            sent += due.packet + due.known.unwrap_or(ByteCount::ZERO);
            if due.id == 4 {
                second_at = Some(now);
            }
        }
    }
    assert!(sent > ByteCount(1_500), "it goes on: {sent}");
    sent
}

#[test]
fn tries_that_nothing_answers_follow_more_and_more_slowly_where_no_packet_is_filled() {
    let mut road = Road::new(1_500, 0, 0.0, 1);
    road.busy = false;
    road.run(HELD_AT_FIRST * 9 / 10);
    let probes = road.probes;
    // After 0.25, 0.5 and 1 s.
    road.run(Duration::from_millis(2_700));
    assert_eq!(road.probes - probes, 1 + 2 * 3);
}

#[test]
fn tries_wait_for_what_a_narrow_link_takes_where_the_rate_is_found_or_no_packet_is_filled() {
    let finds = PathMtu::new(MtuConfig::default());
    let only_answers = PathMtu::new(MtuConfig {
        rate: Some(Bitrate::from_bits_per_second(10_000_000)),
        ..MtuConfig::default()
    });
    for (mtu, finds_rate) in [(finds, true), (only_answers, false)] {
        let sent = tried_over_64_kbit(mtu, finds_rate);
        assert!(sent <= ByteCount(10_000), "{sent}");
    }
}
