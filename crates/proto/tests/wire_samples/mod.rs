//! Each kind of packet with and without each optional part, as the codecs write it, and what they read in it: kept in
//! `scripts/tests/wire` for others to be held to. `scripts/tests/test_dissectors.py` holds the Wireshark dissectors to them.
//!
//! Method: what is read is taken apart without a rest, so that a new field does not compile here before it is
//! compared, and each kind that a codec knows must have a sample.

mod aerotp;
mod sample;
mod splice;
