//! The settings of an endpoint.

use fulmar_net::session::{EarlyData, PresetKey, PublicKey, SecretKey, Security};
use fulmar_proto::rate::RateSharing;
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::transport::aerotp::{AckScheme, ModeRules, ThinRepair};
use fulmar_proto::units::{Bitrate, Duration};
use fulmar_proto::wire::Mode;
use std::io::{Error, ErrorKind, Result};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
/// The transport takes no less.
const GIVE_UP_MIN: Duration = Duration::from_secs(1);

/// The overhead where a deadline is given and nothing else is said, in hundredths.
const OVERHEAD_BY_DEADLINE: u8 = 90;

/// The means by which the two ends know each other.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// A key of each end.
    Own(SecretKey),
    /// One key that both ends have.
    Shared(PresetKey),
    /// None.
    Nothing,
}

impl Identity {
    /// The security of the only peer, where ends are not told apart by their keys.
    pub(crate) fn only_peer(&self) -> Option<Security> {
        match self {
            Self::Own(_) => None,
            Self::Shared(key) => Some(Security::Preset { key: key.clone() }),
            Self::Nothing => Some(Security::None { label: 0 }),
        }
    }
}

/// The settings of an [`Endpoint`](crate::Endpoint): keys first, the rest has defaults.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let (ours, theirs) = (fulmar::new_secret_key()?, fulmar::new_secret_key()?);
/// let rate = fulmar::Bitrate::from_bits_per_second(2_000_000);
/// let config = fulmar::Config::new(ours).peer(theirs.public()).rate(rate);
/// # drop(config); Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    pub(crate) identity: Identity,
    pub(crate) peers: Vec<PublicKey>,
    pub(crate) mode: Mode,
    pub(crate) rate: Option<Bitrate>,
    pub(crate) sharing: Option<RateSharing>,
    pub(crate) connect_timeout: Duration,
    pub(crate) give_up_after: Duration,
    pub(crate) early_data: EarlyData,
    pub(crate) epoch_seen: Option<u64>,
    deadline: Option<Duration>,
    residual: Option<f64>,
    overhead: Option<f64>,
    pub(crate) chooses_checksum: bool,
}

impl Config {
    /// Settings of an end with the key `own`, which others know by [`SecretKey::public`]. Everything is encrypted
    /// and both ends are authenticated (`Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s`).
    pub const fn new(own: SecretKey) -> Self {
        Self::with(Identity::Own(own))
    }

    /// Settings of two ends, and no more, that were given the same secret key instead of a key each
    /// (`Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s`).
    pub const fn with_shared_key(key: PresetKey) -> Self {
        Self::with(Identity::Shared(key))
    }

    /// **Nothing is encrypted, and anybody can speak, listen and interfere.** For tests and measurements between
    /// two ends on a network of one's own.
    pub const fn insecure_for_tests() -> Self {
        Self::with(Identity::Nothing)
    }

    const fn with(identity: Identity) -> Self {
        Self {
            identity,
            peers: Vec::new(),
            mode: Mode::Reliable,
            rate: None,
            sharing: None,
            connect_timeout: CONNECT_TIMEOUT,
            give_up_after: GIVE_UP_AFTER,
            early_data: EarlyData::Off,
            epoch_seen: None,
            deadline: None,
            residual: None,
            overhead: None,
            chooses_checksum: false,
        }
    }

    /// Lets the holder of `key` open streams to this end. Those whom this end calls need not be named here: with the
    /// call they are known until the endpoint is dropped, may open streams too, and count among its 256 peers.
    pub fn peer(mut self, key: PublicKey) -> Self {
        if !self.peers.contains(&key) {
            self.peers.push(key);
        }
        self
    }

    /// The rate of the link in this direction, IP headers included, if it is known and the link is one's own. That is
    /// what is sent, whatever others need: queues and congestion marks lower it, and loss does not. Without it the rate
    /// towards each peer is found, and shared with others as [`Config::share`] says.
    pub const fn rate(mut self, rate: Bitrate) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Lets data leave without UDP's checksum, too, where the link damages packets and delivers them all the same: what is
    /// damaged is mended then. It is found out whether the path carries such datagrams and whether damage arrives; until
    /// then, and wherever that serves better, data has its checksum. Over IPv6 both ends need it.
    pub const fn choose_checksum(mut self) -> Self {
        self.chooses_checksum = true;
        self
    }

    /// Whose the link is: [`RateSharing::Fair`] if neither this nor a rate is given. With a rate and `Fair` or
    /// `Background`, the rate is the most that is sent.
    pub const fn share(mut self, sharing: RateSharing) -> Self {
        self.sharing = Some(sharing);
        self
    }

    /// The transport's mode for streams: one that delivers everything, [`Mode::Reliable`] if none is given.
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The time from writing to reading that what this end sends is repaired for, as long as it leaves most of the rate
    /// unused: repair symbols ahead of any loss, copies of repetitions, or neither, whichever holds this time at the least
    /// cost. It is a target: a stream delivers everything however late, and messages have deadlines of their own
    /// ([`Messages::send`](crate::Messages::send)). Without it a loss is repeated as soon as it is known.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The share of messages, or of writes to a stream, that may take longer than [`Config::deadline`]: 0.01 if none is
    /// given.
    pub const fn residual(mut self, share: f64) -> Self {
        self.residual = Some(share);
        self
    }

    /// The octets that copies and repair symbols may take, as a share of the data, beyond one repetition for each loss: 0.4
    /// if none is given, and 0.9 with a [`Config::deadline`]. At 0 nothing is sent twice before it is known to be lost.
    pub const fn overhead(mut self, share: f64) -> Self {
        self.overhead = Some(share);
        self
    }

    /// The repair of data that leave most of the rate unused.
    pub(crate) fn thin(&self) -> Result<ThinRepair> {
        let error = |text: &str| Err(Error::new(ErrorKind::InvalidInput, text));
        let overhead = match self.overhead {
            Some(share) if !(0.0..=1.0).contains(&share) => {
                return error("Config::overhead is a share of the data, 0 to 1");
            }
            Some(share) => Some(parts(share, 100.0)),
            None => None,
        };
        let Some(deadline) = self.deadline else {
            if self.residual.is_some() {
                return error("Config::residual is of a deadline: give Config::deadline, too");
            }
            let hundredths = overhead.and_then(|parts| u8::try_from(parts).ok());
            return Ok(hundredths.map_or_else(ThinRepair::default, ThinRepair::at_most));
        };
        if ModeRules::of(self.mode).acks != AckScheme::Aggregated {
            let mode = self.mode.name();
            return error(&format!(
                "Config::deadline needs a mode that confirms soon, which `{mode}` does not: reliable or nack-mack"
            ));
        }
        let residual = match self.residual {
            Some(share) if !(0.0..=0.5).contains(&share) => {
                return error("Config::residual is a share of messages, 0 to 0.5");
            }
            Some(share) => parts(share, 1e6),
            None => DeliveryGoal::usual_miss(Deliver::All),
        };
        let goal = DeliveryGoal {
            deadline,
            missed_millionths: residual,
            // Streams have no holes, and the octets of messages travel as a stream.
            deliver: Deliver::All,
            order: DeliveryOrder::Kept,
        };
        let hundredths = overhead.and_then(|parts| u8::try_from(parts).ok());
        let thin = ThinRepair::at_most(hundredths.unwrap_or(OVERHEAD_BY_DEADLINE)).with_goal(goal);
        thin.map_err(|refused| {
            let text = format!("Config::{} {}", refused.field, refused.problem);
            Error::new(ErrorKind::InvalidInput, text)
        })
    }

    /// The time after which a stream whose peer never answered fails: 10 s if none is given.
    pub const fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The time of an outage after which the streams with a peer fail: 30 s if none is given, 1 s at least.
    pub const fn give_up_after(mut self, time: Duration) -> Self {
        self.give_up_after = time;
        self
    }

    /// Data in the first flight, so that the first octets arrive after one way instead of three. Only for what does
    /// no harm if it is taken twice. The end that calls says [`EarlyData::Send`], the one that is called
    /// [`EarlyData::Take`].
    ///
    /// **Replays.** While the called end runs, nothing is taken twice. When it has started again, it refuses early
    /// data of callers whose start, by their clock, is before its own start, by its clock. So the clocks of both
    /// decide: of a caller whose clock is an hour ahead, recordings are taken again for that hour, as streams of their
    /// own, and a called end whose clock starts in 1970 or was set back takes all recordings since.
    /// [`Config::epoch_seen`] makes that independent of clocks, on the condition that it names.
    ///
    /// **Secrecy.** Early data is not forward secret: whoever learns the shared key, or one of the two secret keys,
    /// later can read it. Whoever has the called end's key can make some up. Four octets of each early datagram are
    /// the same for the two ends for good, and show whoever listens that these two speak again.
    pub const fn early_data(mut self, early: EarlyData) -> Self {
        self.early_data = early;
        self
    }

    /// The last value of [`Endpoint::epoch_seen`](crate::Endpoint::epoch_seen) that was written down before this end
    /// started again, or 0 at its very first start: early data of callers that started later is taken, any other is
    /// refused. Without it, the time of this end's start takes its place.
    ///
    /// It has to be on the disk before the program acts on what it read: what was acted on before that, and then a
    /// crash, can be taken again. It is one number for all peers: after one peer has said an epoch far ahead, by its
    /// clock or its will, the next start refuses everybody's early data, which then arrives after three ways.
    pub const fn epoch_seen(mut self, epoch: u64) -> Self {
        self.epoch_seen = Some(epoch);
        self
    }

    /// Whether the settings go together, before a port is asked for; [`Endpoint::bind`](crate::Endpoint::bind) checks
    /// them, too.
    ///
    /// # Errors
    /// `InvalidInput`, with the setting and the cure.
    pub fn check(&self) -> Result<()> {
        let error = |text: String| Err(Error::new(ErrorKind::InvalidInput, text));
        if !ModeRules::of(self.mode).complete {
            let mode = self.mode.name();
            return error(format!(
                "Config::mode is `{mode}`, which may leave octets out; a stream needs reliable, near-reliable or nack-mack"
            ));
        }
        if self.rate == Some(Bitrate::ZERO) {
            return error(
                "Config::rate is 0; give the link's rate, or none to have it found".to_owned(),
            );
        }
        if self.give_up_after < GIVE_UP_MIN {
            return error("Config::give_up_after must be at least 1s".to_owned());
        }
        let is_secured = !matches!(self.identity, Identity::Nothing);
        if self.early_data != EarlyData::Off && !is_secured {
            return error(
                "Config::early_data needs keys: Config::new or Config::with_shared_key".to_owned(),
            );
        }
        self.thin()?;
        if !self.peers.is_empty() && self.identity.only_peer().is_some() {
            return error("Config::peer needs Config::new, with a key of one's own".to_owned());
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of at most a million parts"
)]
fn parts(share: f64, of: f64) -> u32 {
    (share * of).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(90);

    fn config() -> Config {
        Config::insecure_for_tests()
    }

    #[test]
    fn a_deadline_is_a_goal_with_the_usual_figures_unless_others_are_given() {
        let plain = config().thin().expect("sound");
        assert_eq!((plain.overhead_percent, plain.goal()), (40, None));
        let bound = config().overhead(0.0).thin().expect("sound");
        assert_eq!((bound.overhead_percent, bound.goal()), (0, None));
        let usual = config().deadline(DEADLINE).thin().expect("sound");
        let goal = usual.goal().expect("a goal");
        assert_eq!(usual.overhead_percent, 90);
        assert_eq!((goal.deadline, goal.missed_millionths), (DEADLINE, 10_000));
        assert_eq!(
            (goal.deliver, goal.order),
            (Deliver::All, DeliveryOrder::Kept)
        );
        let own = config().deadline(DEADLINE).residual(0.002).overhead(0.35);
        let own = own.thin().expect("sound");
        assert_eq!(own.overhead_percent, 35);
        assert_eq!(own.goal().map(|goal| goal.missed_millionths), Some(2_000));
    }

    #[test]
    fn a_goal_that_means_nothing_is_refused_with_the_cure() {
        let by_deadline = || config().deadline(DEADLINE);
        for (config, words) in [
            (config().residual(0.01), "give Config::deadline"),
            (config().overhead(1.5), "0 to 1"),
            (config().overhead(f64::NAN), "0 to 1"),
            (by_deadline().residual(0.6), "0 to 0.5"),
            (
                config().deadline(Duration::ZERO),
                "Config::deadline must be 1us to 1h",
            ),
            (
                by_deadline().mode(Mode::NearReliable),
                "reliable or nack-mack",
            ),
        ] {
            let error = config.check().expect_err("it is refused");
            assert!(error.to_string().contains(words), "{words} in {error}");
        }
        assert!(by_deadline().mode(Mode::HybridNackMack).check().is_ok());
    }
}
