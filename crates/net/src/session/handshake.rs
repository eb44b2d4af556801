//! The two messages that give both ends keys, for each kind of security.
//!
//! | security | messages | result |
//! |---|---|---|
//! | `Noise` | `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` | both ends proven, forward secrecy, the initiator hidden |
//! | `Preset` | `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` | both ends hold the preset key, forward secrecy |
//! | `None` | two hellos with a CRC-32 | nothing but detection of damage |
//!
//! The patterns, and the proofs behind them: Noise Protocol Framework, revision 34.

use super::cipher::{Cipher, Suite};
use super::config::Security;
use super::dialect::Wire;
use super::entropy::Entropy;
use super::keys::{KEY_BYTES, PresetKey, PublicKey, SecretKey};
use super::kinds::SecurityKinds;
use super::primitives::{self, Counted, MAC_BYTES};
use super::wire::{DatagramType, HEADER_BYTES, HELLO_BYTES, Header, Hello};
use super::work::KeyMeter;
use fulmar_proto::wire::checksum::crc32;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher as SnowCipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

const IK: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const NN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Binds the keys to this protocol and to the initiator's index.
const PROLOGUE: &[u8] = b"fulmar session 1";

const TAG_BYTES: usize = 16;
const CRC_BYTES: usize = 4;

/// Octets behind the header in an initiation, before its two checks.
pub(super) const IK_INITIATION_BYTES: usize =
    KEY_BYTES + (KEY_BYTES + TAG_BYTES) + HELLO_BYTES + TAG_BYTES;
pub(super) const NN_INITIATION_BYTES: usize = KEY_BYTES + HELLO_BYTES + TAG_BYTES;
pub(super) const CLEAR_INITIATION_BYTES: usize = HELLO_BYTES + CRC_BYTES;

/// The kind of security of an initiation with so many octets behind the header, its two checks left out.
pub(super) const fn kind_of_initiation(octets: usize) -> Option<SecurityKinds> {
    Some(match octets {
        IK_INITIATION_BYTES => SecurityKinds::NOISE,
        NN_INITIATION_BYTES => SecurityKinds::PRESET,
        CLEAR_INITIATION_BYTES => SecurityKinds::NONE,
        _ => return None,
    })
}

/// The kind of security with which a datagram calls, if it is an initiation by its header and its length. Nothing else
/// of it is looked at.
pub(crate) fn initiation_kind(octets: &[u8]) -> Option<SecurityKinds> {
    let header = Header::parse(octets).ok()?;
    if header.kind != DatagramType::Initiation {
        return None;
    }
    let around = HEADER_BYTES + 2 * MAC_BYTES + header.fec.parity_bytes();
    kind_of_initiation(octets.len().checked_sub(around)?)
}

/// The place of the pre-shared key, in the pattern's counting.
const IK_PSK: u8 = 2;
const NN_PSK: u8 = 0;

/// The random source through which snow draws its ephemeral keys from our entropy.
struct Drawn(Entropy);

impl Random for Drawn {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill(dest);
        Ok(())
    }
}

/// The curve, with its multiplications counted for the session.
struct Metered {
    curve: Counted,
    meter: KeyMeter,
}

impl Dh for Metered {
    fn name(&self) -> &'static str {
        self.curve.name()
    }
    fn pub_len(&self) -> usize {
        self.curve.pub_len()
    }
    fn priv_len(&self) -> usize {
        self.curve.priv_len()
    }
    fn set(&mut self, privkey: &[u8]) {
        self.meter.count();
        self.curve.set(privkey);
    }
    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        self.meter.count();
        self.curve.generate(rng)
    }
    fn pubkey(&self) -> &[u8] {
        self.curve.pubkey()
    }
    fn privkey(&self) -> &[u8] {
        self.curve.privkey()
    }
    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        self.meter.count();
        self.curve.dh(pubkey, out)
    }
}

/// The means of one handshake: unpredictable octets, and the count of its operations with keys.
pub(super) struct Means {
    pub(super) entropy: Entropy,
    pub(super) meter: KeyMeter,
}

struct Resolver {
    entropy: std::sync::Mutex<Option<Entropy>>,
    meter: KeyMeter,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        let entropy = self.entropy.lock().ok()?.take()?;
        Some(Box::new(Drawn(entropy)))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let curve = match choice {
            DHChoice::Curve25519 => primitives::curve()?,
            DHChoice::Curve448 => return None,
        };
        let meter = self.meter.clone();
        Some(Box::new(Metered { curve, meter }))
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn SnowCipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

fn prologue(index: u32) -> Vec<u8> {
    [PROLOGUE, &index.to_be_bytes()].concat()
}

/// A builder of `pattern`.
fn builder<'a>(pattern: &str, means: Means, prologue: &'a [u8]) -> Option<Builder<'a>> {
    let resolver = Resolver {
        entropy: std::sync::Mutex::new(Some(means.entropy)),
        meter: means.meter,
    };
    Builder::with_resolver(pattern.parse().ok()?, Box::new(resolver))
        .prologue(prologue)
        .ok()
}

/// The pre-shared key of `IKpsk2` when none is configured, as in `WireGuard`.
const NO_PRESET: [u8; KEY_BYTES] = [0; KEY_BYTES];

fn preset_octets(preset: Option<&PresetKey>) -> &[u8; KEY_BYTES] {
    preset.map_or(&NO_PRESET, PresetKey::octets)
}

fn read(state: &mut HandshakeState, body: &[u8]) -> Option<Hello> {
    let mut payload = [0; HELLO_BYTES];
    // A message of another length has a payload of another length.
    let len = body.len().checked_sub(TAG_BYTES)?;
    if len < HELLO_BYTES {
        return None;
    }
    let len = state.read_message(body, &mut payload).ok()?;
    Hello::read(payload.get(..len)?)
}

fn write(state: &mut HandshakeState, hello: &Hello) -> Option<Vec<u8>> {
    let mut body = vec![0; IK_INITIATION_BYTES];
    let len = state.write_message(&hello.to_octets(), &mut body).ok()?;
    body.truncate(len);
    Some(body)
}

fn clear_body(hello: &Hello) -> Vec<u8> {
    let octets = hello.to_octets();
    [&octets[..], &crc32(&octets).to_be_bytes()].concat()
}

fn read_clear(body: &[u8]) -> Option<Hello> {
    let (octets, check) = body.split_last_chunk::<CRC_BYTES>()?;
    (crc32(octets).to_be_bytes() == *check)
        .then(|| Hello::read(octets))
        .flatten()
}

enum State {
    Noise(Box<HandshakeState>),
    Clear,
    /// The handshake has given its keys.
    Spent,
}

/// The keys of `Split()`, the initiator's first.
fn split(state: &mut HandshakeState) -> Zeroizing<[[u8; KEY_BYTES]; 2]> {
    let (first, second) = state.dangerously_get_raw_split();
    Zeroizing::new([first, second])
}

/// The result of a handshake.
pub(super) struct Agreed {
    pub(super) cipher: Cipher,
    /// The form of the data under its keys.
    pub(super) wire: Wire,
}

/// Our side of a handshake that we began.
pub(super) struct Initiator {
    state: State,
    hello: Hello,
}

impl Initiator {
    /// Begins a handshake under our session index `index`; also returns the first message's body.
    ///
    /// `None` only if a key is unusable, which `SessionConfig` has ruled out.
    pub(super) fn begin(
        security: &Security,
        identity: Option<&SecretKey>,
        index: u32,
        hello: &Hello,
        means: Means,
    ) -> Option<(Self, Vec<u8>)> {
        let prologue = prologue(index);
        let begun = |state| Self {
            state,
            hello: hello.clone(),
        };
        let mut state = match security {
            Security::Nobody => return None,
            Security::None { .. } => return Some((begun(State::Clear), clear_body(hello))),
            Security::Noise { peer, preset } => builder(IK, means, &prologue)?
                .local_private_key(identity?.octets())
                .ok()?
                .remote_public_key(peer.octets())
                .ok()?
                .psk(IK_PSK, preset_octets(preset.as_ref()))
                .ok()?
                .build_initiator()
                .ok()?,
            Security::Preset { key } => builder(NN, means, &prologue)?
                .psk(NN_PSK, key.octets())
                .ok()?
                .build_initiator()
                .ok()?,
        };
        let body = write(&mut state, hello)?;
        Some((begun(State::Noise(Box::new(state))), body))
    }

    /// Takes the answer's body. After `None` a genuine answer may still come.
    pub(super) fn finish(&mut self, body: &[u8]) -> Option<(Hello, Agreed)> {
        let (hello, cipher) = match &mut self.state {
            State::Clear => (read_clear(body)?, Cipher::Clear),
            State::Spent => return None,
            State::Noise(state) => {
                let hello = read(state, body)?;
                let [ours, theirs] = &*split(state);
                let suite = Suite::of(&self.hello, &hello);
                // Spent, whatever follows.
                self.state = State::Spent;
                (hello, Cipher::aead(suite, ours, theirs)?)
            }
        };
        let wire = Wire::of(&self.hello, &hello);
        Some((hello, Agreed { cipher, wire }))
    }
}

/// Our side of a handshake that the peer began, with its first message read.
pub(super) struct Responder {
    state: State,
    /// The peer's hello.
    pub(super) hello: Hello,
    /// The peer's public key, where keys tell who it is.
    pub(super) key: Option<PublicKey>,
}

impl Responder {
    /// Reads an initiation that is made for our static key. The sender's index is `index`.
    pub(super) fn read_noise(
        identity: &SecretKey,
        index: u32,
        body: &[u8],
        means: Means,
    ) -> Option<Self> {
        let prologue = prologue(index);
        let mut state = builder(IK, means, &prologue)?
            .local_private_key(identity.octets())
            .ok()?
            .build_responder()
            .ok()?;
        let hello = read(&mut state, body)?;
        let key = PublicKey::from_octets(state.get_remote_static()?.try_into().ok()?);
        Some(Self {
            state: State::Noise(Box::new(state)),
            hello,
            key: Some(key),
        })
    }

    /// Reads an initiation under a preset key, or one without protection.
    pub(super) fn read_known(
        security: &Security,
        index: u32,
        body: &[u8],
        means: Means,
    ) -> Option<Self> {
        let prologue = prologue(index);
        let (state, hello) = match security {
            Security::Noise { .. } | Security::Nobody => return None,
            Security::None { .. } => (State::Clear, read_clear(body)?),
            Security::Preset { key } => {
                let mut state = builder(NN, means, &prologue)?
                    .psk(NN_PSK, key.octets())
                    .ok()?
                    .build_responder()
                    .ok()?;
                let hello = read(&mut state, body)?;
                (State::Noise(Box::new(state)), hello)
            }
        };
        Some(Self {
            state,
            hello,
            key: None,
        })
    }

    /// The answer's body and what was agreed on.
    pub(super) fn answer(self, security: &Security, hello: &Hello) -> Option<(Vec<u8>, Agreed)> {
        let wire = Wire::of(hello, &self.hello);
        let (body, cipher) = match self.state {
            State::Clear => (clear_body(hello), Cipher::Clear),
            State::Spent => return None,
            State::Noise(mut state) => {
                if let Security::Noise { preset, .. } = security {
                    let key = preset_octets(preset.as_ref());
                    state.set_psk(usize::from(IK_PSK), key).ok()?;
                }
                let body = write(&mut state, hello)?;
                let [theirs, ours] = &*split(&mut state);
                let suite = Suite::of(hello, &self.hello);
                (body, Cipher::aead(suite, ours, theirs)?)
            }
        };
        Some((body, Agreed { cipher, wire }))
    }
}
