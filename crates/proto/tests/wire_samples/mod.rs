//! Samples of each kind of packet with and without each optional part, as the codecs write them, and the values the
//! codecs read in them. They are kept in `scripts/tests/wire`; `scripts/tests/test_dissectors.py` compares the
//! Wireshark dissectors with them.
//!
//! Method: every packet that was read is destructured in full, so that a new field does not compile here
//! before it is compared. Each kind that a codec knows must have a sample.

mod aerotp;
mod aerotp_short;
mod sample;
mod splice;
