//! The reason why a source tells nothing of its link, for as long as it lasts.

/// The reason why a source tells nothing of its link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SourceLack {
    /// Its device is not there.
    #[error("there is no device `{0}`; it is waited for, and `ip link` lists those that are there")]
    Device(String),
    /// No modem answers.
    #[error(
        "no modem answers on `{0}`; see that it is on, speaks DLEP (RFC 8175) there, and that no firewall keeps UDP port 854 from it"
    )]
    Modem(String),
    /// The modem has several destinations.
    #[error(
        "the modem has {count} destinations ({first}); name the peer's with destination = \"MAC ADDRESS\""
    )]
    Destinations {
        /// Their number.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// The device has several Wi-Fi stations.
    #[error("{0} Wi-Fi stations are there; name the peer's with station = \"MAC ADDRESS\"")]
    Stations(usize),
    /// The kernel does not tell.
    #[error("the kernel does not tell of the device: {0}")]
    Kernel(String),
}

impl SourceLack {
    /// The event of the log.
    pub(super) const fn event(&self) -> &'static str {
        match self {
            Self::Device(_) => "link_device_missing",
            Self::Modem(_) => "link_modem_missing",
            Self::Destinations { .. } => "link_destination_unnamed",
            Self::Stations(_) => "link_station_unnamed",
            Self::Kernel(_) => "link_device_untold",
        }
    }
}
