use super::*;
use fulmar_proto::machine::{Datagram, Ecn, Machine};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{CloseReason, EndpointConfig};

const GIVE_UP: Duration = Duration::from_secs(30);

/// A sender of a small file, and the machine under it. Nobody answers; the test plays the receiver.
fn sender() -> (Sender<()>, AerotpEndpoint) {
    sender_of(10_000, ())
}

fn sender_of<O: SendObserver>(octets: usize, observer: O) -> (Sender<O>, AerotpEndpoint) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![7; octets]).unwrap();
    let plan = SendPlan {
        name: "file".to_owned(),
        connection: ConnectionConfig {
            give_up_after: GIVE_UP,
            ..ConnectionConfig::default()
        },
        connect_timeout: Duration::from_secs(10),
        id: 1,
    };
    let source = Source::open(&path).unwrap();
    let sender = Sender::new(plan, PathId(0), source, Stop::default(), observer);
    let machine = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
    (sender, machine)
}

/// Offers `offset` to one connection after the other and resets it, every `pause`. Returns the time from the first
/// reset to the sender's end, and the reason.
fn ends_after(
    offset: impl Fn(u64) -> u64,
    pause: Duration,
    rounds: u64,
) -> Option<(Duration, SendError)> {
    let (mut sender, mut machine) = sender();
    let mut now = Instant::START;
    let mut first_reset = None;
    for round in 0..rounds {
        while !matches!(sender.phase, Phase::Talking) {
            if let Some(Err(error)) = sender.take_outcome() {
                let since = first_reset.expect("it does not end before");
                return Some((now.saturating_since(since), error));
            }
            sender.work(now, &mut machine);
            now += Duration::from_millis(50);
        }
        let id = sender.control.unwrap();
        sender.deliver(now, &mut machine, Event::Connected(id));
        let offer = Record::Offer {
            offset: offset(round),
            digest: [0; 32],
        };
        sender.on_record(now, &mut machine, offer).unwrap();
        now += pause;
        let why = CloseReason::Reset;
        first_reset.get_or_insert(now);
        sender.deliver(now, &mut machine, Event::Closed { id, why });
    }
    None
}

/// Between two connections and at the loss of one, the patience ends in different words.
fn is_impatience(error: &SendError) -> bool {
    matches!(
        error,
        SendError::Vanished(GIVE_UP) | SendError::Unsteady(GIVE_UP)
    )
}

#[test]
fn a_receiver_that_resets_every_connection_is_given_up_after_the_patience() {
    let second = Duration::from_secs(1);
    let (after, error) = ends_after(|_| 0, second, 1_000).expect("it ends");
    assert!(is_impatience(&error), "{error}");
    assert!(
        (GIVE_UP..GIVE_UP + 3 * second).contains(&after),
        "{after:?}"
    );
}

#[test]
fn connections_that_bring_progress_are_not_given_up() {
    let second = Duration::from_secs(1);
    assert!(ends_after(|round| round + 1, second, 100).is_none());
}

#[test]
fn connections_that_stand_for_as_long_as_the_patience_are_not_given_up() {
    assert!(ends_after(|_| 0, GIVE_UP, 20).is_none());
}

#[test]
fn a_closed_port_is_tried_again_until_the_patience_ends() {
    let (mut sender, mut machine) = sender();
    let mut now = Instant::START;
    sender.work(now, &mut machine);
    let id = sender.control.unwrap();
    sender.deliver(now, &mut machine, Event::Connected(id));
    sender.patience.on_offer(now, 0);
    let mut attempts = 0;
    let error = loop {
        if let Some(control) = sender.control {
            attempts += u32::from(control != id);
            sender.unreachable(now, &mut machine, PathId(0));
        }
        if let Some(outcome) = sender.take_outcome() {
            break outcome.expect_err("nobody has it");
        }
        now = sender
            .next_deadline()
            .expect("it waits for something")
            .at
            .max(now);
        sender.work(now, &mut machine);
    };
    assert!(is_impatience(&error), "{error}");
    assert_eq!(now, Instant::START + GIVE_UP);
    assert_eq!(attempts, 119, "one every 250 ms, but at the end");
}

/// Octets that were said to be submitted and confirmed.
#[derive(Default)]
struct Shown {
    submitted: u64,
    confirmed: u64,
}

impl SendObserver for Shown {
    fn submitted(&mut self, _now: Instant, range: Range<u64>) {
        self.submitted = range.end;
    }

    fn confirmed(&mut self, _now: Instant, octets: u64) {
        assert!(octets > self.confirmed, "it grows");
        self.confirmed = octets;
    }
}

/// Hands one end's datagrams to the other, but for every seventh.
fn carry(now: Instant, from: &mut AerotpEndpoint, to: &mut AerotpEndpoint, count: &mut u64) {
    let mut out = Vec::new();
    while from.poll_transmit(now, &mut out).is_some() {
        *count += 1;
        if !count.is_multiple_of(7) {
            let (path, octets, ecn) = (PathId(0), out.as_slice(), Ecn::NotCapable);
            to.handle_datagram(now, Datagram { path, octets, ecn });
        }
        out.clear();
    }
}

#[test]
fn no_more_is_shown_as_confirmed_than_the_receiver_has_and_all_of_it_in_the_end() {
    const SIZE: usize = 400_000;
    let (mut sender, mut machine) = sender_of(SIZE, Shown::default());
    let mut peer = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(2));
    peer.listen(FILE_PORT, ConnectionConfig::default()).unwrap();
    let (mut records, mut has, mut control, mut count) = (Records::default(), 0, None, 0);
    let mut now = Instant::START;
    let mut behind = 0;
    while sender.observer.confirmed < SIZE as u64 {
        assert!(now < Instant::START + Duration::from_secs(30), "{has}");
        machine.handle_deadline(now);
        peer.handle_deadline(now);
        while let Some(event) = machine.poll_event() {
            sender.deliver(now, &mut machine, event);
        }
        while sender.work(now, &mut machine) == Step::Again {}
        // This includes octets beyond holes, which cannot be read yet.
        let counters = control.and_then(|id| Some((peer.counters(id)?, peer.payload_bytes(id)?)));
        let there = counters.map_or(0, |(c, payload)| c.accepted_tpdus * payload as u64);
        let shown = sender.observer.confirmed;
        assert!(shown <= there, "{shown} are shown, {there} are there");
        behind = behind.max(sender.observer.submitted - sender.observer.confirmed);
        carry(now, &mut machine, &mut peer, &mut count);
        while let Some(event) = peer.poll_event() {
            if let Event::Incoming { id, .. } = event {
                control = Some(id);
                let mut offer = Vec::new();
                let digest = *blake3::hash(b"").as_bytes();
                Record::Offer { offset: 0, digest }.encode(&mut offer);
                assert_eq!(peer.write(now, id, &offer), Ok(offer.len()));
            }
        }
        while let Some(chunk) = control.and_then(|id| peer.read(now, id)) {
            let mut octets = chunk.octets.as_slice();
            while let Some(item) = records.next(&mut octets).unwrap() {
                if let Item::Data { octets, .. } = item {
                    has += octets.len() as u64;
                }
            }
        }
        carry(now, &mut peer, &mut machine, &mut count);
        now += Duration::from_millis(2);
    }
    assert_eq!(has, SIZE as u64);
    assert!(behind > 10_000, "what is on its way is not shown: {behind}");
}
