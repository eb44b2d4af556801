//! The settings of an endpoint.

use fulmar_net::session::{EarlyData, PresetKey, PublicKey, SecretKey, Security};
use fulmar_proto::rate::RateSharing;
use fulmar_proto::transport::aerotp::ModeRules;
use fulmar_proto::units::{Bitrate, Duration};
use fulmar_proto::wire::Mode;
use std::io::{Error, ErrorKind, Result};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
/// The transport takes no less.
const GIVE_UP_MIN: Duration = Duration::from_secs(1);

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

    pub(crate) fn check(&self) -> Result<()> {
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
        if !self.peers.is_empty() && self.identity.only_peer().is_some() {
            return error("Config::peer needs Config::new, with a key of one's own".to_owned());
        }
        Ok(())
    }
}
