//! The word of a tunnel's other end about itself: what follows from it, and what is told of it. The peer may send any number of
//! them, so only changes are told, and each kind of change once in a while.

use super::greeting::{Listed, Shortened, Speakers, TunnelGreeting};
use crate::gateway::repeats::Repeats;
use fulmar_proto::units::Instant;
use std::cell::{Cell, RefCell};
use std::net::IpAddr;

/// The word of the tunnel's other end about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FarWord {
    /// Nothing came from it.
    #[default]
    Unheard,
    /// Both ends take each other's packets.
    Agrees,
    /// Packets of one end's addresses are dropped at the other.
    Differs,
    /// The peer has no tunnel of this name.
    Missing,
}

impl FarWord {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Unheard => "unheard",
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Missing => "missing",
        }
    }
}

/// A change at a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum TunnelChange {
    /// Both ends take each other's packets; their addresses.
    Up { here: String, there: String },
    /// Packets of one end are dropped at the other: the addresses whose packets are dropped, and all of the other end's.
    NetworksDiffer {
        dropped_here: String,
        dropped_there: String,
        there: String,
    },
    /// The peer has no tunnel of this name.
    MissingThere,
    /// The device was removed; the kernel's word.
    DeviceLost(String),
}

impl TunnelChange {
    /// The name of the log's line and of the trace's event.
    pub(super) const fn event(&self) -> &'static str {
        match self {
            Self::Up { .. } => "tunnel_up",
            Self::NetworksDiffer { .. } => "tunnel_networks_differ",
            Self::MissingThere => "tunnel_missing_there",
            Self::DeviceLost(_) => "tunnel_device_lost",
        }
    }

    /// The reason, in words.
    pub(in crate::gateway) fn why(&self) -> String {
        match self {
            Self::Up { here, there } => {
                format!("{here} here and {there} there take each other's packets")
            }
            Self::NetworksDiffer {
                dropped_here,
                dropped_there,
                ..
            } => format!(
                "packets from [{dropped_here}] are dropped here, those from [{dropped_there}] there"
            ),
            Self::MissingThere => String::new(),
            Self::DeviceLost(error) => error.clone(),
        }
    }

    /// Writes the log's line.
    pub(super) fn log(&self, (tunnel, peer, device): (&str, &str, &str)) {
        match self {
            Self::Up { here, there } => {
                tracing::info!(event = "tunnel_up", tunnel, peer, device, %here, %there);
            }
            Self::NetworksDiffer {
                dropped_here,
                dropped_there,
                there,
            } => {
                let cure = "give both devices addresses of the same networks, or name the other's in routes";
                tracing::warn!(
                    event = "tunnel_networks_differ",
                    tunnel, peer, device, %dropped_here, %dropped_there, %there, cure
                );
            }
            Self::MissingThere => {
                let cure = "write the same name in the [[tunnel]] of both ends";
                tracing::warn!(event = "tunnel_missing_there", tunnel, peer, cure);
            }
            Self::DeviceLost(error) => {
                let cure = "restart the gateway";
                tracing::error!(event = "tunnel_device_lost", device, %error, cure);
            }
        }
    }
}

/// The other end of a tunnel, as it is known here.
#[derive(Debug)]
pub(super) struct FarEnd {
    ours: TunnelGreeting,
    speakers: Speakers,
    word: Cell<FarWord>,
    /// The last change, if it has yet to be told.
    untold: RefCell<Option<TunnelChange>>,
    told: RefCell<Option<TunnelChange>>,
    repeats: RefCell<Repeats>,
}

impl FarEnd {
    /// That of a tunnel whose end here says this.
    pub(super) fn new(ours: TunnelGreeting) -> Self {
        Self {
            speakers: ours.speakers(),
            ours,
            word: Cell::default(),
            untold: RefCell::default(),
            told: RefCell::default(),
            repeats: RefCell::default(),
        }
    }

    /// The message that tells it of the end here.
    pub(super) fn greeting(&self) -> Option<Vec<u8>> {
        self.ours.encode()
    }

    /// Whether it may speak for this address.
    pub(super) fn may_speak_for(&self, source: IpAddr) -> bool {
        self.speakers.include(source)
    }

    pub(super) fn word(&self) -> FarWord {
        self.word.get()
    }

    /// The peer has no tunnel of this name.
    pub(super) fn is_missing(&self) {
        self.says(FarWord::Missing, TunnelChange::MissingThere);
    }

    /// Compares what it says of itself with the end here; `false` if it says nothing that can be read.
    pub(super) fn greets(&self, message: &[u8]) -> bool {
        let Some(theirs) = TunnelGreeting::decode(message) else {
            return false;
        };
        let dropped_here = theirs.dropped_by(&self.speakers);
        let dropped_there = self.ours.dropped_by(&theirs.speakers());
        let there = Shortened(&theirs.addresses).to_string();
        if dropped_here.is_empty() && dropped_there.is_empty() {
            let here = Listed(&self.ours.addresses).to_string();
            self.says(FarWord::Agrees, TunnelChange::Up { here, there });
        } else {
            let [dropped_here, dropped_there] =
                [dropped_here, dropped_there].map(|all| Shortened(&all).to_string());
            let change = TunnelChange::NetworksDiffer {
                dropped_here,
                dropped_there,
                there,
            };
            self.says(FarWord::Differs, change);
        }
        true
    }

    fn says(&self, word: FarWord, change: TunnelChange) {
        self.word.set(word);
        let is_told = self.told.borrow().as_ref() == Some(&change);
        self.untold.replace((!is_told).then_some(change));
    }

    /// The change to tell now, if there is one. One whose kind was told a moment ago waits, and is forgotten if the next one
    /// comes before it was told.
    pub(super) fn take_change(&self, now: Instant) -> Option<TunnelChange> {
        let event = self.untold.borrow().as_ref()?.event();
        self.repeats.borrow_mut().may(now, event)?;
        let change = self.untold.take();
        self.told.replace(change.clone());
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Duration;

    fn far_end() -> FarEnd {
        FarEnd::new(TunnelGreeting {
            addresses: vec!["10.90.0.1/24".parse().expect("one")],
            routes: Vec::new(),
        })
    }

    fn at(ms: u64) -> Instant {
        Instant::START + Duration::from_millis(ms)
    }

    #[test]
    fn greetings_of_a_peer_that_repeats_itself_are_told_once() {
        let far = far_end();
        let mut told = Vec::new();
        for ms in 0..60_000 {
            assert!(far.greets(b"\x0010.90.0.2/24\n"));
            told.extend(far.take_change(at(ms)));
        }
        assert_eq!(
            told,
            [TunnelChange::Up {
                here: "10.90.0.1/24".to_owned(),
                there: "10.90.0.2/24".to_owned()
            }]
        );
    }

    #[test]
    fn greetings_that_differ_each_time_are_told_once_in_a_while_and_the_last_is_told() {
        let far = far_end();
        let mut told = Vec::new();
        for ms in 0..60_000 {
            let (host, network) = (2 + ms % 100, 90 + ms % 2);
            let greeting = format!("\x0010.{network}.0.{host}/24\n");
            assert!(far.greets(greeting.as_bytes()));
            told.extend(far.take_change(at(ms)));
        }
        // Two kinds, each once in ten seconds.
        assert_eq!(told.len(), 12, "{:?}", told.first_chunk::<3>());
        assert_eq!(told[1].event(), "tunnel_networks_differ", "at once");
        assert!(far.greets(b"\x0010.90.0.254/24\n"));
        let last = far.take_change(at(120_000)).expect("it is another");
        assert!(last.why().contains("10.90.0.254/24"), "{last:?}");
        assert_eq!(far.take_change(at(240_000)), None);
    }

    #[test]
    fn a_greeting_with_many_networks_is_told_in_a_short_line() {
        let far = far_end();
        let many = |count: usize| {
            let one = |host: usize| format!("10.91.{}.{}/24", host / 200, 1 + host % 200);
            let all: Vec<String> = (0..count).map(one).collect();
            format!("\0{}\n", all.join(" "))
        };
        assert!(far.greets(many(64).as_bytes()));
        let change = far.take_change(at(0)).expect("they differ");
        let TunnelChange::NetworksDiffer { there, .. } = &change else {
            panic!("{change:?}");
        };
        assert!(there.ends_with("10.91.0.10/24 and 54 more"), "{there}");
        assert!(change.why().len() < 400, "{change:?}");
        // More than an end can have are not compared.
        assert!(!far.greets(many(65).as_bytes()));
    }

    #[test]
    fn a_peer_that_lacks_the_tunnel_and_then_has_it_is_told_of_both() {
        let far = far_end();
        far.is_missing();
        assert_eq!(far.take_change(at(0)), Some(TunnelChange::MissingThere));
        assert_eq!(far.word(), FarWord::Missing);
        assert!(far.greets(b"\x0010.90.0.2/24\n"));
        assert_eq!(
            far.take_change(at(1)).map(|it| it.event()),
            Some("tunnel_up")
        );
        assert_eq!(far.word(), FarWord::Agrees);
        // It is told again, once it may be, if it lacks the tunnel again.
        far.is_missing();
        assert_eq!(far.take_change(at(2)), None);
        assert_eq!(
            far.take_change(at(10_000)),
            Some(TunnelChange::MissingThere)
        );
    }
}
