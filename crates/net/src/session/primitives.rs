//! The curve and the hash of sessions. Nothing in the session reaches them but through here, where each operation is
//! counted for the thread that makes it: a price in `docs/threat-model.md` that forgot one is found.

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Dh, Random};
use std::cell::Cell;

/// Octets of a hash that datagrams carry as a check or a cookie.
pub(super) const MAC_BYTES: usize = 16;

/// Operations of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Performed {
    /// Multiplications on Curve25519.
    pub key_operations: u64,
    /// BLAKE3 hashes and keys derived with it, but not the random octets.
    pub hashes: u64,
}

thread_local! {
    static KEY_OPERATIONS: Cell<u64> = const { Cell::new(0) };
    static HASHES: Cell<u64> = const { Cell::new(0) };
}

/// The operations of the thread that calls, over all its sessions.
pub fn performed() -> Performed {
    Performed {
        key_operations: KEY_OPERATIONS.get(),
        hashes: HASHES.get(),
    }
}

/// A key from `material`, for the purpose that `context` names.
pub(crate) fn derive_key(context: &str, material: &[u8]) -> [u8; 32] {
    HASHES.set(HASHES.get() + 1);
    blake3::derive_key(context, material)
}

/// The hash of `octets` under `key`.
pub(crate) fn keyed_hash(key: &[u8; 32], octets: &[u8]) -> [u8; 32] {
    HASHES.set(HASHES.get() + 1);
    *blake3::keyed_hash(key, octets).as_bytes()
}

/// Curve25519; `None` if snow was built without it.
pub(super) fn curve() -> Option<Counted> {
    let curve = DefaultResolver.resolve_dh(&DHChoice::Curve25519)?;
    Some(Counted(curve))
}

/// The curve, with its multiplications counted.
pub(super) struct Counted(Box<dyn Dh>);

fn count_key_operation() {
    KEY_OPERATIONS.set(KEY_OPERATIONS.get() + 1);
}

impl Dh for Counted {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn pub_len(&self) -> usize {
        self.0.pub_len()
    }
    fn priv_len(&self) -> usize {
        self.0.priv_len()
    }
    fn set(&mut self, privkey: &[u8]) {
        count_key_operation();
        self.0.set(privkey);
    }
    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        count_key_operation();
        self.0.generate(rng)
    }
    fn pubkey(&self) -> &[u8] {
        self.0.pubkey()
    }
    fn privkey(&self) -> &[u8] {
        self.0.privkey()
    }
    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        count_key_operation();
        self.0.dh(pubkey, out)
    }
}
