//! The places where a session's datagrams are captured: sealed, and opened.
//!
//! An arriving datagram is captured sealed before its content, with the reason if it was refused. An answer that is
//! sealed meanwhile comes before both. The content of a leaving datagram is captured when it is sealed. The sealed
//! datagram is the driver's to show, which knows the address it goes to ([`SessionTap::sent`]).

use super::counters::DropReason;
use super::path_slot::PathSlot;
use crate::capture::{Recorder, Seen};
use fulmar_capture::{Comment, Dissector, InterfaceId, PacketDirection, PacketEnds};
use fulmar_proto::units::Instant;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The taps of one session.
#[derive(Clone, Debug)]
pub struct SessionTap {
    recorder: Recorder,
    outer: InterfaceId,
    inner: InterfaceId,
    /// The address where the carrier listens.
    local: SocketAddr,
    /// The comment on each peer's content.
    peers: Vec<Comment>,
    /// Contents of the datagram that is being taken in, each with its peer and the place of its path.
    opened: Vec<(usize, PathSlot, Vec<u8>)>,
}

impl SessionTap {
    /// The interfaces that it needs, sealed and opened, each by name and text.
    pub const INTERFACES: [(&str, &str); 2] = [
        ("udp", "the carrier: sealed datagrams"),
        ("inner", "what is in them: user data in clear"),
    ];

    /// Taps of a session at `local` with these peers, in the order of its configuration.
    pub fn new<'a>(
        recorder: Recorder,
        [outer, inner]: [InterfaceId; 2],
        local: SocketAddr,
        peers: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let peers = peers.into_iter().map(|name| Comment::NONE.peer(name));
        Self {
            recorder,
            outer,
            inner,
            local,
            peers: peers.collect(),
            opened: Vec::new(),
        }
    }

    /// Captures a sealed datagram that is handed to the socket.
    pub fn sent(&self, now: Instant, to: SocketAddr, octets: &[u8]) {
        let from = self.local;
        self.outer(
            now,
            PacketDirection::Outbound,
            PacketEnds::Sockets { from, to },
            octets,
            &Comment::NONE,
        );
    }

    /// Captures a datagram that came from `source` ([`super::source_octets`]), with its fate.
    pub(super) fn received(
        &mut self,
        now: Instant,
        source: &[u8],
        octets: &[u8],
        verdict: Result<(), DropReason>,
    ) {
        let ends = PacketEnds::Sockets {
            from: address(source),
            to: self.local,
        };
        let comment = match verdict {
            Ok(()) => Comment::NONE,
            Err(reason) => Comment::NONE.refused(reason.name()),
        };
        self.outer(now, PacketDirection::Inbound, ends, octets, &comment);
        for (peer, place, content) in core::mem::take(&mut self.opened) {
            self.content(now, PacketDirection::Inbound, (peer, place), &content);
        }
    }

    /// Notes the content of the datagram that is being taken in, which was opened.
    pub(super) fn opened(&mut self, (peer, place): (usize, PathSlot), content: &[u8]) {
        self.opened.push((peer, place, content.to_vec()));
    }

    /// Captures content for a peer that was sealed.
    pub(super) fn sealed(&self, now: Instant, way: (usize, PathSlot), content: &[u8]) {
        self.content(now, PacketDirection::Outbound, way, content);
    }

    fn outer(
        &self,
        at: Instant,
        direction: PacketDirection,
        ends: PacketEnds,
        octets: &[u8],
        comment: &Comment,
    ) {
        self.recorder.packet(&Seen {
            interface: self.outer,
            at,
            direction,
            dissector: Dissector::Session,
            ends: Some(ends),
            octets,
            comment,
        });
    }

    fn content(
        &self,
        at: Instant,
        direction: PacketDirection,
        (peer, place): (usize, PathSlot),
        octets: &[u8],
    ) {
        let none = Comment::NONE;
        let of_peer = self.peers.get(peer).unwrap_or(&none);
        let of_path = (place != PathSlot::FIRST).then(|| of_peer.clone().path(place.bits()));
        let comment = of_path.as_ref().unwrap_or(of_peer);
        self.recorder.packet(&Seen {
            interface: self.inner,
            at,
            direction,
            dissector: Dissector::Inner,
            ends: None,
            octets,
            comment,
        });
    }
}

/// The reverse of [`super::source_octets`]; a driver that knows no addresses gives fewer octets.
fn address(source: &[u8]) -> SocketAddr {
    let Some((ip, port)) = source.split_first_chunk::<16>() else {
        return (Ipv6Addr::UNSPECIFIED, 0).into();
    };
    let port = port
        .first_chunk()
        .map_or(0, |port| u16::from_be_bytes(*port));
    (IpAddr::from(*ip).to_canonical(), port).into()
}
