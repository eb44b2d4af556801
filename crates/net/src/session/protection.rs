//! The parity of what goes to one peer: none, the same for all peers, fixed, or following what the peer tells.

use super::cipher::TAG_BYTES;
use super::dialect::{DataParity, Wire};
use super::unchecked::HANDSHAKE_WORDS;
use super::wire::ARMOURED_HEADER_BYTES;
use fulmar_proto::damage::{ProtectedLayout, StrengthFollower};
use fulmar_proto::units::{BitErrorRate, ByteCount, Duration, FecStrength, Instant};
use fulmar_proto::wire::aerotp::{ChannelWord, RateCode};

/// The parity of data to a peer by a carrier that lets damage through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armour {
    /// As many words as serve best by what the peer tells of damage, if it does.
    Follows,
    /// Always so many words, at most 255.
    Fixed(FecStrength),
}

/// Octets of the headers in front of a datagram that are lost with the first wrong bit: destination port, length and
/// checksum of UDP, or as much of a frame.
const BARE: usize = 6;
/// Octets of content that are no payload: type, name, number and time of data.
const INSIDE: usize = 10;

/// The time for which a small change of strength waits before content is cut for it. Until then what is longer has as many
/// words as fit.
const CUT_EVERY: Duration = Duration::from_millis(100);
/// The part of its words by which strength may grow without delay.
const GROWS_AT_ONCE: u16 = 3;

/// The layout of full datagrams in packets of so many octets, with these headers.
pub(super) fn layout(packet: ByteCount, headers: ByteCount) -> ProtectedLayout {
    ProtectedLayout {
        packet: packet.as_usize(),
        before: headers.as_usize() + ARMOURED_HEADER_BYTES,
        bare: BARE,
        inside: TAG_BYTES + INSIDE,
    }
}

/// The parity of what goes to a peer.
pub(super) struct Protection {
    /// Words behind all datagrams, to every peer; none of what follows holds then.
    everywhere: FecStrength,
    armour: Option<Armour>,
    /// Whether data goes without the armour that the application wants.
    is_held: bool,
    parity: DataParity,
    /// The words that content is cut for, and the time since when.
    cut_for: FecStrength,
    cut_at: Option<Instant>,
    /// The choice of words, while it follows.
    // Boxed: most peers have none.
    follower: Option<Box<StrengthFollower>>,
    /// Whether the peer keeps what is beyond repair until further parity comes.
    mends_later: bool,
    /// The rate of wrong bits that the link told last.
    told: Option<BitErrorRate>,
}

impl Protection {
    pub(super) const fn new(everywhere: FecStrength) -> Self {
        Self {
            everywhere,
            armour: None,
            is_held: false,
            parity: DataParity {
                is_armoured: !everywhere.is_none(),
                words: everywhere,
            },
            cut_for: everywhere,
            cut_at: None,
            follower: None,
            mends_later: false,
            told: None,
        }
    }

    /// Takes the armour that the application wants; [`Protection::agree`] says whether there is one.
    pub(super) fn set_armour(&mut self, armour: Option<Armour>) {
        let fits = |armour: &Armour| match armour {
            Armour::Follows => true,
            Armour::Fixed(words) => u8::try_from(words.words()).is_ok(),
        };
        self.armour = armour.filter(fits);
    }

    /// Lets data go without armour until further notice, or with it; [`Protection::agree`] does it.
    pub(super) const fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Chooses for a peer that keeps what is beyond repair until further parity comes, or for another one;
    /// [`Protection::agree`] does it.
    pub(super) const fn mend_later(&mut self, mends_later: bool) {
        self.mends_later = mends_later;
    }

    /// Takes the greatest share of datagrams that both ends keep until further parity comes. The next word's choice goes by it.
    pub(super) fn set_kept_share(&mut self, share: f64) {
        if let Some(follower) = &mut self.follower {
            follower.set_kept_share(share);
        }
    }

    /// Whether the application wants armour.
    pub(super) const fn is_wanted(&self) -> bool {
        self.armour.is_some()
    }

    /// Whether data may be armoured, now or later: what leaves is kept in mind for claims then.
    pub(super) const fn may_armour(&self) -> bool {
        self.parity.is_armoured || self.armour.is_some()
    }

    /// Words behind initiations.
    pub(super) const fn words_of_calls(&self) -> FecStrength {
        if self.everywhere.is_none() && self.armour.is_some() {
            HANDSHAKE_WORDS
        } else {
            self.everywhere
        }
    }

    /// Takes the parity that follows from the wire and from whether the peer mends what is damaged. Returns whether it is
    /// another one.
    pub(super) fn agree(&mut self, wire: Wire, mends: bool, layout: ProtectedLayout) -> bool {
        if !self.everywhere.is_none() {
            return false;
        }
        let may = mends && wire == Wire::Two && !self.is_held;
        let armour = self.armour.filter(|_| may);
        let words = match armour {
            Some(Armour::Follows) => {
                let follower = self.follower.take();
                let mut follower =
                    follower.unwrap_or_else(|| Box::new(StrengthFollower::new(layout)));
                follower.mend_later(self.mends_later);
                self.follower.insert(follower).strength()
            }
            Some(Armour::Fixed(words)) => words,
            None => FecStrength::NONE,
        };
        if armour != Some(Armour::Follows) && armour.is_some() {
            self.follower = None;
        }
        let parity = DataParity {
            is_armoured: armour.is_some(),
            words,
        };
        let is_other = core::mem::replace(&mut self.parity, parity) != parity;
        if is_other {
            self.cut_for = words;
        }
        is_other
    }

    /// The parity of a full datagram.
    pub(super) const fn parity(&self) -> DataParity {
        self.parity
    }

    fn following(&self) -> Option<&StrengthFollower> {
        self.follower.as_deref().filter(|_| self.parity.is_armoured)
    }

    fn follow(&mut self) -> bool {
        let words = self.following().map(StrengthFollower::strength);
        let words = words.unwrap_or(self.parity.words);
        core::mem::replace(&mut self.parity.words, words) != words
    }

    /// Makes datagrams of this layout from now on. Returns whether full ones have other parity.
    pub(super) fn fit(&mut self, layout: ProtectedLayout) -> bool {
        if let Some(follower) = &mut self.follower {
            follower.set_layout(layout);
        }
        let has_changed = self.follow();
        self.cut_for = self.parity.words;
        has_changed
    }

    /// Takes the peer's word. Returns whether content is to be cut for other parity from now on: at once where much more is
    /// needed, and else now and then, since each cut goes through all connections.
    pub(super) fn on_word(
        &mut self,
        now: Instant,
        word: ChannelWord,
        round_trip: Duration,
    ) -> bool {
        if let Some(follower) = &mut self.follower {
            follower.on_word(now, word, round_trip);
        }
        self.follow();
        let (words, cut_for) = (self.parity.words, self.cut_for);
        let is_recent = |at: Instant| now.saturating_since(at) < CUT_EVERY;
        let is_much = words.words() > cut_for.words() + cut_for.words() / GROWS_AT_ONCE;
        if words == cut_for || (!is_much && self.cut_at.is_some_and(is_recent)) {
            return false;
        }
        (self.cut_for, self.cut_at) = (words, Some(now));
        true
    }

    /// Takes the rate of wrong bits that the link tells of itself, as the first guess until the peer's next word. Returns as
    /// [`Protection::on_word`] does.
    pub(super) fn on_told(
        &mut self,
        now: Instant,
        bits: Option<BitErrorRate>,
        round_trip: Duration,
    ) -> bool {
        let is_other = core::mem::replace(&mut self.told, bits) != bits;
        let Some(bits) = bits.filter(|_| is_other) else {
            return false;
        };
        let code = RateCode::of(bits);
        let word = ChannelWord {
            recent: code,
            lasting: code,
        };
        self.on_word(now, word, round_trip)
    }

    /// The rate of wrong bits on the way to the peer, as it told.
    pub(super) fn rate(&self) -> Option<BitErrorRate> {
        self.following()?.rate()
    }

    /// The parity of a datagram with so many octets of content, where a full one has `room` for them. Content that was cut
    /// for less parity has as many words as fit. `None`: it is better cut to pieces.
    pub(super) fn parity_for(&self, content: usize, room: usize) -> Option<DataParity> {
        let Some(over) = content.checked_sub(room).filter(|over| *over > 0) else {
            return Some(self.parity_of_short(content));
        };
        let follower = self.following()?;
        let left = self.parity.words.parity_bytes().checked_sub(over)?;
        let words = FecStrength::from_words(u16::try_from(left / 4).ok()?)?;
        (words >= follower.least_for_long()).then(|| self.parity.with(words))
    }

    /// The parity of a datagram with so many octets of content, which are not more than a full one's.
    pub(super) fn parity_of_short(&self, content: usize) -> DataParity {
        match self.following() {
            Some(follower) => self.parity.with(follower.strength_for(content + TAG_BYTES)),
            None => self.parity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: u16) -> FecStrength {
        FecStrength::from_words(words).expect("a strength")
    }

    fn full() -> ProtectedLayout {
        layout(ByteCount(1_500), ByteCount(28))
    }

    fn word(rate: f64) -> ChannelWord {
        let code = RateCode::of(BitErrorRate::new(rate).expect("a share"));
        ChannelWord {
            recent: code,
            lasting: code,
        }
    }

    fn following() -> Protection {
        let mut protection = Protection::new(FecStrength::NONE);
        protection.set_armour(Some(Armour::Follows));
        assert!(protection.agree(Wire::Two, true, full()));
        protection
    }

    #[test]
    fn armour_needs_the_second_wire_and_a_peer_that_mends() {
        let mut protection = Protection::new(FecStrength::NONE);
        assert!(
            !protection.agree(Wire::Two, true, full()),
            "nobody wants it"
        );
        protection.set_armour(Some(Armour::Fixed(words(256))));
        assert!(!protection.agree(Wire::Two, true, full()), "too many words");
        protection.set_armour(Some(Armour::Fixed(words(3))));
        assert_eq!(protection.words_of_calls(), HANDSHAKE_WORDS);
        assert!(!protection.agree(Wire::One, true, full()));
        assert!(!protection.agree(Wire::Two, false, full()));
        assert!(protection.agree(Wire::Two, true, full()));
        assert_eq!(protection.parity().words, words(3));
        assert!(
            protection.agree(Wire::Two, false, full()),
            "its keys are gone"
        );
        assert_eq!(protection.parity(), DataParity::NONE);
        let mut everywhere = Protection::new(words(9));
        everywhere.set_armour(Some(Armour::Follows));
        assert!(!everywhere.agree(Wire::Two, true, full()));
        assert_eq!(
            everywhere.parity().words,
            words(9),
            "what is configured holds"
        );
    }

    #[test]
    fn a_clean_path_has_armour_without_words_and_a_bad_one_many() {
        let mut protection = following();
        assert_eq!(protection.parity().words, words(6));
        assert!(protection.on_word(Instant::START, word(1e-9), Duration::ZERO));
        let parity = protection.parity();
        assert!(parity.is_armoured && parity.words.is_none());
        let later = Instant::START + Duration::from_secs(1);
        assert!(protection.on_word(later, word(1e-3), Duration::ZERO));
        assert!(protection.parity().words >= words(18));
    }

    #[test]
    fn small_changes_of_strength_cut_content_anew_ten_times_a_second_at_most() {
        let mut protection = following();
        let at = |millis| Instant::START + Duration::from_millis(millis);
        assert!(protection.on_word(at(0), word(1e-9), Duration::ZERO));
        // From nothing any strength is much more.
        assert!(protection.on_word(at(1), word(1e-3), Duration::ZERO));
        let (mut cuts, mut changes, mut before) = (0, 0, protection.parity().words);
        for step in 2..2_002_u64 {
            let rate = if step / 10 % 2 == 0 { 9e-4 } else { 1.2e-3 };
            cuts += u32::from(protection.on_word(at(step), word(rate), Duration::ZERO));
            let words = protection.parity().words;
            changes += u32::from(words != before);
            before = words;
        }
        assert!(changes > 100, "strength itself follows at once: {changes}");
        assert!((1..=21).contains(&cuts), "{cuts}");
    }

    #[test]
    fn content_cut_for_less_parity_has_what_fits_or_goes_in_pieces() {
        let mut protection = following();
        protection.on_word(Instant::START, word(1e-3), Duration::ZERO);
        let strong = protection.parity().words;
        let room = 1_500 - 28 - ARMOURED_HEADER_BYTES - TAG_BYTES - strong.parity_bytes();
        let of = |content| {
            protection
                .parity_for(content, room)
                .map(|parity| parity.words)
        };
        assert_eq!(of(room), Some(strong));
        assert_eq!(of(room + 4), FecStrength::from_words(strong.words() - 1));
        assert_eq!(
            of(room + strong.parity_bytes()),
            None,
            "no parity would be left"
        );
        assert!(of(100).is_some_and(|words| words < strong));
        // What is fixed has no fewer.
        let mut fixed = Protection::new(FecStrength::NONE);
        fixed.set_armour(Some(Armour::Fixed(words(6))));
        fixed.agree(Wire::Two, true, full());
        let of = |content| fixed.parity_for(content, room).map(|parity| parity.words);
        assert_eq!((of(100), of(room + 1)), (Some(words(6)), None));
    }
}
