//! The words of gateway and keeper to each other: one packet each, sockets travel beside them.
//!
//! Octet 0 is the version, octet 1 the kind, then the body. Both are the same program most of the
//! time; after an upgrade the version tells.

use super::record::{RECORD_BYTES_MAX, SocketRecord};
use core::time::Duration;
use fulmar_proto::splice::FlowId;

/// The version of this protocol.
pub(super) const VERSION: u8 = 1;
/// The longest message.
pub(super) const MESSAGE_BYTES_MAX: usize = 2 + 2 * 16 + RECORD_BYTES_MAX;

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperMessage {
    /// Gateway: give me all that you have. Stay for this long when I am gone.
    Take {
        /// The time to stay.
        keep_for: Duration,
    },
    /// Gateway, with a socket: keep it. Keeper: here it is.
    Socket {
        /// Its flow.
        flow: FlowId,
        /// The record of the socket.
        record: SocketRecord,
    },
    /// Gateway: a flow's record is this now.
    Record {
        /// The flow.
        flow: FlowId,
        /// The record of the socket.
        record: SocketRecord,
    },
    /// Gateway: close the flow's socket.
    Forget {
        /// The flow.
        flow: FlowId,
    },
    /// Gateway: all is over.
    Leave,
    /// Keeper: that was all.
    All,
    /// Keeper: another gateway is here.
    Busy,
    /// Gateway: accept a client at a port of yours. Keeper: its [`KeeperMessage::Socket`] under a name of the keeper's, or
    /// [`KeeperMessage::NoClient`].
    Accept {
        /// The port's name.
        port: FlowId,
        /// The record of the client's socket.
        record: SocketRecord,
    },
    /// Keeper: there is none to be accepted, by this error of the system.
    NoClient {
        /// `errno`.
        error: i32,
    },
    /// Gateway: a client that was accepted is this flow's.
    Claim {
        /// The keeper's name for the client.
        client: FlowId,
        /// Its flow.
        flow: FlowId,
        /// The record of the socket.
        record: SocketRecord,
    },
}

/// Why octets are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMessage {
    /// The octets are of this other version.
    Version(u8),
    /// The octets fit none of this version's messages.
    Malformed,
}

impl KeeperMessage {
    const fn kind(&self) -> u8 {
        match self {
            Self::Take { .. } => 1,
            Self::Socket { .. } => 2,
            Self::Record { .. } => 3,
            Self::Forget { .. } => 4,
            Self::Leave => 5,
            Self::All => 6,
            Self::Busy => 7,
            Self::Accept { .. } => 8,
            Self::NoClient { .. } => 9,
            Self::Claim { .. } => 10,
        }
    }

    /// Its octets.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.kind()];
        match self {
            Self::Take { keep_for } => {
                let millis = u64::try_from(keep_for.as_millis()).unwrap_or(u64::MAX);
                out.extend_from_slice(&millis.to_be_bytes());
            }
            Self::Socket { flow: name, record }
            | Self::Record { flow: name, record }
            | Self::Accept { port: name, record } => {
                out.extend_from_slice(&name.0);
                record.encode(&mut out);
            }
            Self::Claim {
                client,
                flow,
                record,
            } => {
                out.extend_from_slice(&client.0);
                out.extend_from_slice(&flow.0);
                record.encode(&mut out);
            }
            Self::NoClient { error } => out.extend_from_slice(&error.to_be_bytes()),
            Self::Forget { flow } => out.extend_from_slice(&flow.0),
            Self::Leave | Self::All | Self::Busy => {}
        }
        out
    }

    /// Reads a message from these octets.
    ///
    /// # Errors
    /// [`NoMessage`]: nothing that this version knows.
    pub fn decode(octets: &[u8]) -> Result<Self, NoMessage> {
        let [version, kind, body @ ..] = octets else {
            return Err(NoMessage::Malformed);
        };
        if *version != VERSION {
            return Err(NoMessage::Version(*version));
        }
        let flow = || body.first_chunk::<16>().copied().map(FlowId);
        let described = |body: &[u8]| {
            let (name, record) = body.split_first_chunk::<16>()?;
            Some((FlowId(*name), SocketRecord::decode(record)?))
        };
        let message = match kind {
            1 => body.first_chunk().map(|millis| Self::Take {
                keep_for: Duration::from_millis(u64::from_be_bytes(*millis)),
            }),
            2 => described(body).map(|(flow, record)| Self::Socket { flow, record }),
            3 => described(body).map(|(flow, record)| Self::Record { flow, record }),
            4 => flow().map(|flow| Self::Forget { flow }),
            5 => Some(Self::Leave),
            6 => Some(Self::All),
            7 => Some(Self::Busy),
            8 => described(body).map(|(port, record)| Self::Accept { port, record }),
            9 => body.first_chunk().map(|error| Self::NoClient {
                error: i32::from_be_bytes(*error),
            }),
            10 => body.split_first_chunk::<16>().and_then(|(client, body)| {
                let (flow, record) = described(body)?;
                let client = FlowId(*client);
                Some(Self::Claim {
                    client,
                    flow,
                    record,
                })
            }),
            _ => None,
        };
        message.ok_or(NoMessage::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::position::Baseline;
    use super::*;
    use fulmar_proto::splice::Role;

    #[test]
    fn every_message_comes_back_and_no_cut_one_is_taken_for_another() {
        let flow = FlowId([9; 16]);
        let record = SocketRecord {
            role: Role::Acceptor,
            baseline: Baseline {
                taken: 1,
                given: 2,
                syn: 1,
            },
            note: vec![4; super::super::NOTE_BYTES_MAX],
        };
        let all = [
            KeeperMessage::Take {
                keep_for: Duration::from_secs(60),
            },
            KeeperMessage::Socket {
                flow,
                record: record.clone(),
            },
            KeeperMessage::Record {
                flow,
                record: record.clone(),
            },
            KeeperMessage::Forget { flow },
            KeeperMessage::Leave,
            KeeperMessage::All,
            KeeperMessage::Busy,
            KeeperMessage::Accept {
                port: flow,
                record: record.clone(),
            },
            KeeperMessage::NoClient { error: -7 },
            KeeperMessage::Claim {
                client: FlowId([8; 16]),
                flow,
                record,
            },
        ];
        for message in all {
            let octets = message.encode();
            assert!(octets.len() <= MESSAGE_BYTES_MAX);
            assert_eq!(KeeperMessage::decode(&octets), Ok(message.clone()));
            for len in 0..octets.len().min(43) {
                // Only a record's note has no end of its own.
                let cut = KeeperMessage::decode(&octets[..len]);
                assert!(cut.is_err(), "{message:?} cut to {len}");
            }
            let newer = [&[2], &octets[1..]].concat();
            assert_eq!(KeeperMessage::decode(&newer), Err(NoMessage::Version(2)));
        }
        assert_eq!(KeeperMessage::decode(&[1, 99]), Err(NoMessage::Malformed));
    }
}
