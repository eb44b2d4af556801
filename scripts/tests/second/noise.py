"""The initiator's half of the two Noise patterns that the session's page names (section 2), after the Noise Protocol Framework, revision 34."""

import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

TAG_OCTETS = 16
KEY_OCTETS = 32
PATTERNS = {
    "IKpsk2": ([["e", "es", "s", "ss"], ["e", "ee", "se", "psk"]]),
    "NNpsk0": ([["psk", "e"], ["e", "ee"]]),
}


def hashed(octets):
    return hashlib.blake2s(octets).digest()


def public(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def shared(secret, other):
    return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(other))


def hkdf(chaining, material, outputs):
    def mac(key, octets):
        return hmac.new(key, octets, hashlib.blake2s).digest()
    secret, last, made = mac(chaining, material), b"", []
    for number in range(1, outputs + 1):
        last = mac(secret, last + bytes([number]))
        made.append(last)
    return made


class Symmetric:
    """Noise's SymmetricState and its CipherState."""

    def __init__(self, name):
        self.hash = hashed(name) if len(name) > 32 else name.ljust(32, b"\0")
        self.chaining, self.key, self.counter = self.hash, None, 0

    def mix_hash(self, octets):
        self.hash = hashed(self.hash + octets)

    def mix_key(self, material):
        self.chaining, self.key = hkdf(self.chaining, material, 2)
        self.counter = 0

    def mix_key_and_hash(self, material):
        self.chaining, mixed, self.key = hkdf(self.chaining, material, 3)
        self.counter = 0
        self.mix_hash(mixed)

    def nonce(self):
        self.counter += 1
        return bytes(4) + (self.counter - 1).to_bytes(8, "little")

    def encrypt(self, octets):
        sealed = ChaCha20Poly1305(self.key).encrypt(self.nonce(), octets, self.hash) if self.key else octets
        self.mix_hash(sealed)
        return sealed

    def decrypt(self, sealed):
        octets = ChaCha20Poly1305(self.key).decrypt(self.nonce(), sealed, self.hash) if self.key else sealed
        self.mix_hash(sealed)
        return octets

    def split(self):
        return hkdf(self.chaining, b"", 2)


class Initiator:
    """One handshake. `ephemeral` is drawn by the caller, for each handshake anew."""

    def __init__(self, pattern, prologue, ephemeral, secret=None, responder=None, psk=bytes(KEY_OCTETS)):
        self.first, self.second = PATTERNS[pattern]
        self.state = Symmetric(f"Noise_{pattern}_25519_ChaChaPoly_BLAKE2s".encode())
        self.state.mix_hash(prologue)
        self.psk, self.keys = psk, {"e": ephemeral, "s": secret}
        self.others = {"s": responder}
        if responder is not None:
            self.state.mix_hash(responder)

    def agree(self, token):
        """A token of two letters: the initiator's key first, then the responder's."""
        self.state.mix_key(shared(self.keys[token[0]], self.others[token[1]]))

    def write(self, payload):
        """The initiation's body."""
        message = b""
        for token in self.first:
            if token == "e":
                ephemeral = public(self.keys["e"])
                message += ephemeral
                self.state.mix_hash(ephemeral)
                # Noise asks this of patterns with a pre-shared key.
                self.state.mix_key(ephemeral)
            elif token == "s":
                message += self.state.encrypt(public(self.keys["s"]))
            elif token == "psk":
                self.state.mix_key_and_hash(self.psk)
            else:
                self.agree(token)
        return message + self.state.encrypt(payload)

    def read(self, message):
        """The payload of the response's body, which raises `InvalidTag` where it is another's; and the keys for sending and receiving."""
        for token in self.second:
            if token == "e":
                self.others["e"], message = message[:KEY_OCTETS], message[KEY_OCTETS:]
                self.state.mix_hash(self.others["e"])
                self.state.mix_key(self.others["e"])
            elif token == "psk":
                self.state.mix_key_and_hash(self.psk)
            else:
                self.agree(token)
        return self.state.decrypt(message), *self.state.split()
