use super::*;
use crate::rng::Rng;

const PACKET: ByteCount = ByteCount(1_500);
/// The octets that wait behind a datagram.
const MUCH: ByteCount = ByteCount(1_000_000);

fn found() -> FoundPath {
    FoundPath::new(RateConfig::default())
}

fn sealed(number: u64, content: SealedContent) -> Sealed {
    Sealed { number, content }
}

/// A number of any length.
fn wild(rng: &mut Rng) -> u32 {
    let bits = rng.next_u64() >> rng.below(64);
    u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default()
}

#[test]
fn whatever_a_peer_tells_sending_goes_on() {
    for seed in 0..60 {
        let mut rng = Rng::from_seed(seed);
        let mut found = found();
        found.set_numbered(seed % 3 != 0);
        let mut now = Instant::START;
        let mut sent = 0_u64;
        for number in 0..4_000 {
            now += Duration::from_micros(rng.below(20_000));
            match rng.below(8) {
                0 => found.on_path_ack(
                    now,
                    &PathAck {
                        newest: rng.below(number + 2),
                        hold: Duration::from_micros(rng.below(1 << 20)),
                        clock: wild(&mut rng),
                        octets: wild(&mut rng),
                        marks: u16::try_from(rng.below(1 << 16)).unwrap_or_default(),
                    },
                ),
                1 => found.on_report(
                    now,
                    &DeliveryReport {
                        echo: wild(&mut rng),
                        hold: Duration::from_micros(rng.below(1 << 20)),
                        arrived: wild(&mut rng),
                        clock: now.as_wrapping_micros(),
                    },
                ),
                2 => found.on_sealed(now, sealed(number, SealedContent::Answers), PACKET, MUCH),
                3 => found.on_sealed(now, sealed(number, SealedContent::Own), PACKET, MUCH),
                _ if found.has_room(now) => {
                    found.on_sealed(now, sealed(number, SealedContent::Data), PACKET, MUCH);
                    found.on_sent(now, PACKET, false, MUCH);
                    sent += 1;
                }
                _ => {
                    let until = found.blocked_until().expect("it is full").at;
                    assert!(until <= now + Duration::from_secs(3_600), "{until}");
                    now = now.max(until);
                }
            }
            let least = Bitrate::from_bits_per_second(1_000);
            assert!(found.pace(now) >= least, "{seed}");
        }
        assert!(sent > 200, "{seed}: {sent}");
    }
}

#[test]
fn a_peer_that_counts_anew_is_believed_after_a_second_and_the_search_begins_with_what_was_found() {
    let mut found = found();
    found.set_numbered(true);
    let at = |millis| Instant::START + Duration::from_millis(millis);
    // 10 datagrams in 12 ms, 10 ms away, ten times a second.
    let mut number = 0;
    let mut tell = |found: &mut FoundPath, now: u64, clock: u32, octets: u32| {
        for _ in 0..10 {
            found.on_sealed(at(now), sealed(number, SealedContent::Data), PACKET, MUCH);
            number += 1;
        }
        let ack = PathAck {
            newest: number - 1,
            hold: Duration::ZERO,
            clock,
            octets,
            marks: 0,
        };
        found.on_path_ack(at(now + 22), &ack);
    };
    for round in 0..40_u32 {
        let now = 100 * u64::from(round);
        tell(
            &mut found,
            now,
            3_000_000_000 + 100_000 * round,
            15_000 * round,
        );
    }
    assert!(found.rate().is_some());
    // Another clock, and other totals: at first they are taken for old ones.
    tell(&mut found, 4_000, 1_000 * 12, 700);
    assert!(found.delivered.is_some() && found.heard.is_some());
    tell(&mut found, 5_500, 1_000 * 1_512, 15_700);
    let heard = found.heard.expect("told anew");
    assert_eq!(heard.arrived_total, 0);
    tell(&mut found, 5_600, 1_000 * 1_612, 30_700);
    assert_eq!(found.heard.expect("told").arrived_total, 15_000);
}

#[test]
fn answers_alone_begin_no_search_and_are_told_of_where_data_flow() {
    let mut found = found();
    found.set_numbered(true);
    for number in 0..100 {
        found.on_sealed(
            Instant::START,
            sealed(number, SealedContent::Answers),
            PACKET,
            ByteCount::ZERO,
        );
    }
    assert!(!found.has_sent && found.controller.in_flight().0 == 0);
    let now = Instant::START + Duration::from_secs(1);
    found.on_sealed(
        now,
        sealed(100, SealedContent::Data),
        PACKET,
        ByteCount::ZERO,
    );
    assert_eq!(found.controller.in_flight(), PACKET);
    found.on_sealed(
        now,
        sealed(101, SealedContent::Answers),
        PACKET,
        ByteCount::ZERO,
    );
    assert_eq!(found.controller.in_flight().0, 2 * PACKET.0);
    // The session's own are counted with what follows them.
    found.on_sealed(
        now,
        sealed(102, SealedContent::Own),
        PACKET,
        ByteCount::ZERO,
    );
    assert_eq!(found.controller.in_flight().0, 2 * PACKET.0);
    found.on_sealed(
        now,
        sealed(103, SealedContent::Data),
        PACKET,
        ByteCount::ZERO,
    );
    assert_eq!(found.controller.in_flight().0, 4 * PACKET.0);
}
