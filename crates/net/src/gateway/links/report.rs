//! The report of a link that tells of itself, for status, figures and sentences.

use serde::Serialize;

/// One link that tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToldLinkReport {
    /// Its name.
    pub name: String,
    /// The path to the peer that it serves: 0 is the peer's own address, n the n-th of its `[[peer.path]]`.
    pub path: usize,
    /// The source of its words, by its key in the file.
    pub source: &'static str,
    /// Whether the source is there: a writer at the socket.
    pub is_heard: bool,
    /// The reason why its source tells nothing, in words.
    pub lack: Option<String>,
    /// The seconds since its last message, while that holds.
    pub age_seconds: Option<f64>,
    /// Whether it tells that it is up.
    pub up: Option<bool>,
    /// The rate towards the peer that it tells.
    pub rate_out_bits_per_second: Option<u64>,
    /// The rate on the way here that it tells.
    pub rate_back_bits_per_second: Option<u64>,
    /// The most that its medium could carry towards the peer, as it tells.
    pub ceiling_out_bits_per_second: Option<u64>,
    /// The power of the signal that is received here, in dBm.
    pub signal_dbm: Option<f64>,
    /// The signal-to-noise ratio that it tells.
    pub signal_to_noise_decibels: Option<f64>,
    /// The share of wrong bits towards the peer that it tells.
    pub bit_error_ratio_out: Option<f64>,
    /// The share of wrong bits on the way here that it tells.
    pub bit_error_ratio_back: Option<f64>,
    /// The time that a datagram would wait in its own queue.
    pub queue_seconds: Option<f64>,
    /// The seconds until the next planned outage; 0 while it lasts.
    pub next_outage_in_seconds: Option<f64>,
    /// The seconds that it lasts, or still lasts.
    pub next_outage_seconds: Option<f64>,
    /// The cost of the path that it tells.
    pub cost: Option<u8>,
    /// Whether it is believed.
    pub is_trusted: bool,
    /// The fault for which it is not, in words.
    pub fault: Option<&'static str>,
    /// The times that it was found wrong.
    pub faults: u64,
    /// Its messages since the start.
    pub messages: u64,
    /// The lines or messages that were none, and changed nothing.
    pub wrong_messages: u64,
}
