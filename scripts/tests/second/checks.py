"""Checks of the session's page that come before any operation with keys (sections 1, 4), and those of security none."""

import struct
import zlib

import blake3
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

CHECK_OCTETS = 16


def crc16(octets):
    """CRC-16/M17."""
    crc = 0xFFFF
    for octet in octets:
        crc ^= octet << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x5935) & 0xFFFF if crc & 0x8000 else crc << 1
    return crc


def crc32(octets):
    return struct.pack(">I", zlib.crc32(octets))


def derive(context, material):
    return blake3.blake3(material, derive_key_context=context).digest()


def keyed(key, octets):
    return blake3.blake3(octets, key=key).digest(length=CHECK_OCTETS)


def first_check(addressee, octets):
    """The check over header and body; `addressee` is kind and material."""
    return keyed(derive("fulmar 2026-11-21 session first check", addressee), octets)


def second_check(cookie, first):
    return keyed(b"fulmar 20261122 second check key", cookie + first)


def hchacha20(key, nonce):
    """The subkey of XChaCha20: a block of ChaCha20 is its last state with its first one added; without it, rows one and four are the subkey."""
    first = struct.unpack("<4I", b"expand 32-byte k") + struct.unpack("<4I", nonce)
    block = struct.unpack("<16I", Cipher(algorithms.ChaCha20(key, nonce), None).encryptor().update(bytes(64)))
    return struct.pack("<8I", *((word - begun) & 0xFFFFFFFF for word, begun in zip(block[:4] + block[12:], first)))


def unwrap_cookie(addressee, first, content):
    """The cookie in the content of a datagram of type 3, for the initiation whose first check is `first`; raises `InvalidTag`."""
    key, nonce = derive("fulmar 2026-11-21 session cookie", addressee), content[:24]
    return ChaCha20Poly1305(hchacha20(key, nonce[:16])).decrypt(bytes(4) + nonce[16:], content[24:], first)
