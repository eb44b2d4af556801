//! The traffic that crossed the link in one direction, as a bystander would count it.

use fulmar_baseline::wire::tcp::{AddressPair, TcpFlags, TcpHeader, TcpOptions, TcpSeq};

/// Counts of one direction, before loss.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) segments: u64,
    /// Segments with a timestamp, but for SYNs and resets.
    pub(crate) stamped: u64,
    /// Segments without a timestamp, but for SYNs and resets.
    pub(crate) unstamped: u64,
    /// Segments with SACK blocks.
    pub(crate) sacks: u64,
    /// Segments with a window of zero, but for SYNs and resets.
    pub(crate) shut: u64,
    pub(crate) resets: u64,
    /// Resets once the sender had sent and received everything: no connection was left to harm.
    pub(crate) late_resets: u64,
    /// The options of the last SYN.
    pub(crate) syn: Option<TcpOptions>,
    /// The number after the FIN.
    pub(super) end: Option<TcpSeq>,
    /// The last acknowledgement.
    pub(super) ack: Option<TcpSeq>,
}

impl Seen {
    /// Counts `segment`; `is_over` says that its sender has sent and received everything.
    pub(super) fn note(&mut self, addresses: &AddressPair, segment: &[u8], is_over: bool) {
        let segment = TcpHeader::parse(addresses, segment).expect("undamaged before the link");
        let header = &segment.header;
        self.segments += 1;
        self.sacks += u64::from(!header.options.sack.is_empty());
        if header.flags.has(TcpFlags::SYN) {
            self.syn = Some(header.options);
        } else if header.flags.has(TcpFlags::RST) {
            let resets = if is_over {
                &mut self.late_resets
            } else {
                &mut self.resets
            };
            *resets += 1;
        } else {
            self.ack = header.flags.has(TcpFlags::ACK).then_some(header.ack);
            if header.flags.has(TcpFlags::FIN) {
                let len = u32::try_from(segment.sequence_len()).expect("below the MTU");
                self.end = Some(header.seq.plus(len));
            }
            let stamped = header.options.timestamps.is_some();
            self.stamped += u64::from(stamped);
            self.unstamped += u64::from(!stamped);
            self.shut += u64::from(header.window == 0);
        }
    }
}
